"""The example of docs/sdk-python.md."""

import os

from switchyard_plugin import Action, CallPlugin, Fact, InspectRequest, InspectResult, OperateRequest, OperateResult, not_granted, run, unknown_action

plugin = CallPlugin()


@plugin.inspect
async def inspect(request: InspectRequest) -> InspectResult:
    if request.project.root is None:
        return InspectResult("nothing to look at", warnings=["project.files.read is not granted"])
    names = sorted(os.listdir(request.project.root))
    facts = [Fact("entry", "Entry", name, name) for name in names]
    return InspectResult(f"{len(names)} entries", facts, [Action("touch", "Touch", "Makes an empty file", "adds a file")])


@plugin.operate
async def operate(request: OperateRequest) -> OperateResult:
    if request.action != "touch":
        raise unknown_action(request.action)
    if request.project.root is None:
        raise not_granted("project.files.read")
    with open(os.path.join(request.project.root, "touched"), "xb"):
        return OperateResult("succeeded", "touched")


if __name__ == "__main__":
    run(plugin)
