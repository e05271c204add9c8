"""The public names: that they exist, are typed and described, and load no more than they need."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import pkgutil
import subprocess
import sys
import typing
import unittest
from pathlib import Path

import switchyard_plugin

SDK = Path(switchyard_plugin.__file__).parent

MODELS = (
    "Action", "Capability", "Fact", "Grant", "HealthReport", "HealthResult", "InspectRequest", "InspectResult", "Limits", "OperateRequest",
    "OperateResult", "OperationContext", "OperationReceipt", "OperationSpec", "Problem", "ProgressUpdate", "Project", "SessionManifest", "SettingsProblem",
)  # fmt: skip
LIVING = {"CallPlugin", "Operation", "Package", "ReceiptStore", "Schema", "SessionPlugin"}
"""They hold handlers, connections or files. Exceptions are apart too: the interpreter
sets __traceback__ and __context__ of what is raised, which a frozen class refuses."""


def modules() -> list[str]:
    names = [m.name for m in pkgutil.walk_packages([str(SDK)], "switchyard_plugin.")]
    return [n for n in names if not n.endswith("__main__")]


class PublicTest(unittest.TestCase):
    def test_names(self) -> None:
        self.assertEqual(sorted(switchyard_plugin._PLACES), sorted(n for n in switchyard_plugin.__all__ if n != "__version__"))
        for name in switchyard_plugin.__all__:
            value = getattr(switchyard_plugin, name)
            if inspect.isclass(value) or inspect.isfunction(value):
                self.assertTrue(inspect.getdoc(value), name)
        with self.assertRaises(AttributeError):
            switchyard_plugin.gone

    def test_types(self) -> None:
        checked = 0
        for module_name in modules():
            module = importlib.import_module(module_name)
            for name, value in vars(module).items():
                if name.startswith("_") or getattr(value, "__module__", None) != module_name:
                    continue
                members = [value]
                if inspect.isclass(value):
                    members += [m for n, m in vars(value).items() if inspect.isfunction(m) and (not n.startswith("_") or n == "__init__")]
                for member in members:
                    if inspect.isfunction(member):
                        # Names that only a type checker imports are looked up where they are.
                        hints = typing.get_type_hints(member, localns=_known())
                        wanted = [p for p in inspect.signature(member).parameters if p != "self" and p != "cls"]
                        self.assertEqual([p for p in wanted if p not in hints], [], f"{module_name}.{member.__qualname__}")
                        self.assertTrue("return" in hints, f"{module_name}.{member.__qualname__}")
                        checked += 1
        self.assertGreater(checked, 150)

    def test_models_are_frozen(self) -> None:
        """What plugin authors are given, and give, are frozen dataclasses with typed fields."""
        for name in MODELS:
            model = getattr(switchyard_plugin, name)
            with self.subTest(name):
                self.assertTrue(dataclasses.is_dataclass(model) and model.__dataclass_params__.frozen)
                names = [f.name for f in dataclasses.fields(model)]
                hints = typing.get_type_hints(model)
                self.assertEqual([n for n in names if n not in hints], [])
                one, same = (model(*range(len(names))) for _ in range(2))
                self.assertEqual(one, same)
                self.assertNotEqual(one, model(*range(1, len(names) + 1)))
                self.assertEqual(repr(one), f"{name}({', '.join(f'{n}={i}' for i, n in enumerate(names))})")
                for field in (names[0], "made_up"):
                    with self.assertRaises(dataclasses.FrozenInstanceError):
                        setattr(one, field, None)
                with self.assertRaises(dataclasses.FrozenInstanceError):
                    delattr(one, names[0])

    def test_every_model_is_listed(self) -> None:
        """A class of the public names is a model, or one of those that have a life of their own."""
        classes = {n for n in switchyard_plugin.__all__ if inspect.isclass(getattr(switchyard_plugin, n))}
        errors = {n for n in classes if issubclass(getattr(switchyard_plugin, n), Exception)}
        self.assertEqual(classes - errors - LIVING, set(MODELS))

    def test_annotations_are_complete(self) -> None:
        """Every parameter, result and field of every module is annotated, and the package says so."""
        self.assertTrue((SDK / "py.typed").is_file())
        checked = 0
        for path in sorted(SDK.rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    checked += 1
                    given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, *filter(None, (node.args.vararg, node.args.kwarg))]
                    bare = [a.arg for a in given if a.annotation is None and a.arg not in ("self", "cls")]
                    self.assertEqual((bare, node.returns is None), ([], False), f"{path.name}:{node.lineno} {node.name}")
        self.assertGreater(checked, 400)

    def test_a_start_loads_only_its_parts(self) -> None:
        program = "import switchyard_plugin, sys; switchyard_plugin.SessionPlugin; print(*[m for m in sys.modules if m.startswith('switchyard')])"
        loaded = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(SDK.parent)!r}); {program}"], capture_output=True, text=True, check=True)
        for module in ("call", "testing", "seal", "ambiguity", "connection"):
            self.assertNotIn(f"switchyard_plugin.{module}", loaded.stdout.split())

    def test_only_the_standard_library(self) -> None:
        for path in SDK.rglob("*.py"):
            for line in path.read_text(encoding="utf-8").splitlines():
                words = line.split()
                if words[:1] in (["import"], ["from"]) and len(words) > 1:
                    top = words[1].split(".")[0].rstrip(",")
                    if top and top != "switchyard_plugin":
                        self.assertIn(top, sys.stdlib_module_names, f"{path.name}: {line}")


def _known() -> dict[str, object]:
    from switchyard_plugin.call import CallPlugin
    from switchyard_plugin.connection import Connection
    from switchyard_plugin.manifest import OperationSpec
    from switchyard_plugin.schema import Problem, Schema
    from switchyard_plugin.schema_compile import Builder

    return {"Builder": Builder, "CallPlugin": CallPlugin, "Connection": Connection, "OperationSpec": OperationSpec, "Problem": Problem, "Schema": Schema, "SessionPlugin": switchyard_plugin.SessionPlugin, "Operation": switchyard_plugin.Operation}


if __name__ == "__main__":
    unittest.main()
