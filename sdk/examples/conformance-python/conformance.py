#!/usr/bin/env python3
"""The program that proves the Python SDK: it offers the operations of docs/conformance.md.

It does what the handlers there do and nothing of the protocol, which is the SDK's work.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from typing import Any, AsyncIterator

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

from switchyard_plugin import Operation, PluginError, ProgressUpdate, SessionPlugin, SettingsError, SettingsProblem, run


def state(name: str) -> str:
    return os.path.join(os.environ["SWITCHYARD_PLUGIN_STATE"], name)


def append_line(path: str, line: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, line.encode() + b"\n")
        os.fsync(fd)
    finally:
        os.close(fd)


def lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read().splitlines()
    except FileNotFoundError:
        return []


async def wait_to_be_cancelled() -> None:
    await asyncio.Event().wait()


def create_plugin() -> SessionPlugin:
    plugin = SessionPlugin()

    @plugin.settings
    async def settings(given: dict[str, Any]) -> dict[str, Any]:
        greeting = given["greeting"].strip(" ")
        if greeting in ("", "forbidden"):
            raise SettingsError(SettingsProblem("/greeting", "this greeting is not allowed"))
        return {"retries": 3, **given, "greeting": greeting}

    @plugin.started
    async def started(given: dict[str, Any]) -> None:
        if given.get("mode") == "degraded":
            plugin.set_health("degraded", "degraded by settings")

    @plugin.operation("conformance.basic", "echo")
    @plugin.operation("conformance.basic", "versioned")
    @plugin.operation("conformance.basic", "typed")
    @plugin.operation("conformance.aging", "aging")
    @plugin.operation("conformance.aging", "old")
    async def echo(op: Operation) -> Any:
        return op.payload

    @plugin.operation("conformance.basic", "fail")
    async def fail(op: Operation) -> Any:
        p = op.payload
        op.effect(p.get("effect", "none"))
        raise PluginError(p["code"], p.get("message", "failed as asked"), p.get("retryable", False))

    @plugin.operation("conformance.basic", "raise")
    async def raise_(op: Operation) -> Any:
        raise RuntimeError(f"raised with {op.payload['marker']}")

    @plugin.operation("conformance.basic", "bad-result")
    async def bad_result(op: Operation) -> Any:
        return {"wrong": True}

    @plugin.operation("conformance.basic", "context")
    async def context(op: Operation) -> Any:
        c = op.context
        return {
            "requestId": c.request_id,
            "operationId": c.operation_id,
            "idempotencyKey": c.idempotency_key,
            "attempt": c.attempt,
            "deadlineUtc": c.deadline_utc.strftime("%Y-%m-%dT%H:%M:%S.%fZ") if c.deadline_utc else None,
            "traceId": c.trace_id,
            "payloadClass": c.payload_class,
            "permissions": sorted(g.permission_id for g in op.grants),
            "greeting": op.settings["greeting"],
            "retries": op.settings["retries"],
        }

    @plugin.operation("conformance.basic", "print")
    async def print_(op: Operation) -> Any:
        print(op.payload["text"])
        print(op.payload["text"], file=sys.stderr)
        return {}

    @plugin.operation("conformance.basic", "blob")
    async def blob(op: Operation) -> Any:
        return {"value": "x" * int(op.payload["size"])}

    @plugin.operation("conformance.basic", "set-health")
    async def set_health(op: Operation) -> Any:
        plugin.set_health(op.payload["status"], op.payload.get("message"))
        return {}

    @plugin.operation("conformance.basic", "exit")
    async def exit_(op: Operation) -> Any:
        os._exit(int(op.payload["status"]))

    async def counting(op: Operation) -> AsyncIterator[Any]:
        p = op.payload
        for n in range(1, int(p["to"]) + 1):
            if p.get("delayMs"):
                await asyncio.sleep(p["delayMs"] / 1000)
            if n == p.get("failAt"):
                raise PluginError("unavailable", "failed as asked", False)
            if n == p.get("invalidAt"):
                yield {"wrong": True}
            elif p.get("size"):
                yield {"n": n, "filler": "x" * int(p["size"])}
            else:
                yield {"n": n}

    plugin.handle("conformance.stream", "count", counting)

    @plugin.operation("conformance.stream", "sum")
    async def sum_(op: Operation) -> Any:
        total = items = 0
        async for item in op.items:
            total += item["n"]
            items += 1
        return {"sum": total, "items": items}

    @plugin.operation("conformance.stream", "relay")
    async def relay(op: Operation) -> AsyncIterator[Any]:
        async for item in op.items:
            yield item

    @plugin.operation("conformance.work", "slow")
    async def slow(op: Operation) -> Any:
        steps = int(op.payload["steps"])
        for k in range(1, steps + 1):
            await asyncio.sleep(op.payload["stepMs"] / 1000)
            op.progress(ProgressUpdate(f"step {k}", 100 * k / steps, k, steps))
        return {"steps": steps}

    @plugin.operation("conformance.work", "hold")
    async def hold(op: Operation) -> Any:
        p = op.payload
        then = p.get("then", "cancelled")
        op.progress(ProgressUpdate("holding"))
        try:
            await wait_to_be_cancelled()
        except asyncio.CancelledError:
            await asyncio.sleep(p.get("cleanupMs", 0) / 1000)
            if "cleanup" in p:
                append_line(state("cleanup.log"), p["cleanup"])
            if then == "cancelled":
                raise
        if then == "answer":
            return {"held": True}
        raise PluginError("internal", "failed while cancelled")

    @plugin.operation("conformance.work", "stubborn")
    async def stubborn(op: Operation) -> Any:
        op.progress(ProgressUpdate("working"))
        loop = asyncio.get_running_loop()
        end = loop.time() + op.payload["ms"] / 1000
        while (left := end - loop.time()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                pass
        if op.payload.get("then", "answer") == "answer":
            return {"ignored": True}
        raise PluginError("internal", "failed as asked")

    @plugin.operation("conformance.effects", "append")
    @plugin.operation("conformance.effects", "note")
    async def append(op: Operation) -> Any:
        p = op.payload
        line, then, effect = p["line"], p.get("then", "answer"), p.get("effect", "committed")
        code, retryable = p.get("code", "unavailable"), p.get("retryable", True)
        append_line(state("attempts.log"), line)
        if lines(state("attempts.log")).count(line) <= p.get("failTimes", 0):
            op.effect("none")
            raise PluginError(code, "failed as asked", retryable)
        if effect != "none":
            append_line(state("effects.log"), line)
        op.effect(effect)
        if then == "fail":
            raise PluginError(code, "failed as asked", retryable)
        if then == "raise":
            raise RuntimeError("raised as asked")
        if then == "exit":
            os._exit(7)
        if then == "hold":
            op.progress(ProgressUpdate("holding"))
            await wait_to_be_cancelled()
        if then == "wait":
            op.progress(ProgressUpdate("holding"))
            await asyncio.sleep(p.get("waitMs", 0) / 1000)
        return {"line": line, "count": len(lines(state("effects.log")))}

    @plugin.operation("conformance.effects", "count-once")
    async def count_once(op: Operation) -> AsyncIterator[Any]:
        append_line(state("effects.log"), "count")
        op.effect("committed")
        async for item in counting(op):
            yield item

    @plugin.operation("conformance.guarded", "read")
    async def read(op: Operation) -> Any:
        return {"permissionId": "files", "scope": op.grant("files").scope}

    @plugin.operation("conformance.guarded", "secret")
    async def secret(op: Operation) -> Any:
        value = op.secret("/apiToken")
        then = op.payload.get("then", "answer")
        if then == "fail":
            raise PluginError("unavailable", "the service refused the token")
        if then == "raise":
            raise RuntimeError(f"the service refused {value}")
        return {"sha256": hashlib.sha256(value.encode()).hexdigest(), "length": len(value)}

    return plugin


def create_call_plugin() -> Any:
    from switchyard_plugin import (
        Action, CallError, CallPlugin, Fact, InspectRequest, InspectResult, OperateRequest, OperateResult, bad_input, unknown_action,
    )  # fmt: skip

    plugin = CallPlugin()
    actions = ("echo", "partial", "failed", "refuse", "report", "raise", "print", "append", "hold")

    @plugin.inspect
    async def inspect(request: InspectRequest) -> InspectResult:
        facts = [Fact("name", "Name", request.project.display_name, "host")]
        if request.project.root is not None:
            facts.append(Fact("root", "Root", request.project.root, "host"))
        return InspectResult("conformance", facts, [Action(a, a, f"Does {a}.", "none") for a in actions])

    @plugin.operate
    async def operate(request: OperateRequest) -> OperateResult:
        action, given = request.action, request.input

        def member(name: str) -> str:
            if not isinstance(given, dict) or not isinstance(given.get(name), str):
                raise bad_input(f"the input needs the string {name}")
            return str(given[name])

        def in_root(name: str) -> str:
            if request.project.root is None:
                raise bad_input("the action needs the project's root")
            return os.path.join(request.project.root, name)

        if action == "echo":
            return OperateResult("succeeded", "echoed", given)
        if action == "partial":
            return OperateResult("partially_succeeded", "partial")
        if action == "failed":
            return OperateResult("failed", "failed")
        if action == "refuse":
            raise bad_input("refused as asked")
        if action == "report":
            raise CallError(member("message"))
        if action == "raise":
            raise RuntimeError(f"raised with {member('marker')}")
        if action == "print":
            print(member("text"))
            print(member("text"), file=sys.stderr)
            return OperateResult("succeeded", "printed")
        if action == "append":
            append_line(in_root("effects.log"), member("line"))
            return OperateResult("succeeded", "appended")
        if action == "hold":
            try:
                await wait_to_be_cancelled()
            except asyncio.CancelledError:
                append_line(in_root("cleanup.log"), member("cleanup"))
            return OperateResult("failed", "cancelled")
        raise unknown_action(action)

    return plugin


if __name__ == "__main__":
    run(session=create_plugin, call=create_call_plugin)
