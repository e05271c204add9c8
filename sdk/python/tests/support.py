"""A package for the tests, and a plugin that serves it."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import Any, AsyncIterator, Coroutine, Iterable, Optional

from switchyard_plugin import Operation, Package, PluginError, ProgressUpdate, ReceiptStore, SessionPlugin, SettingsError, SettingsProblem
from switchyard_plugin.seal import seal

ROOT = Path(__file__).resolve().parent.parent.parent.parent
SHARED = ROOT.parent / "shared" / "corpora"
DIALECT = "https://json-schema.org/draft/2020-12/schema"

FEATURES = [
    "cancel.v1", "progress.v1", "flow.credit.v1", "receipt.v1", "heartbeat.v1",
    "secrets.inject.v1", "settings.validate.v1", "health.watch.v1",
]  # fmt: skip

SCHEMAS: dict[str, dict[str, Any]] = {
    "any": {"description": "Whatever."},
    "text": {"type": "object", "additionalProperties": False, "required": ["text"], "properties": {"text": {"type": "string"}}},
    "item": {
        "type": "object",
        "additionalProperties": False,
        "required": ["n"],
        "properties": {"n": {"type": "integer"}, "filler": {"type": "string"}},
    },
    "settings": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "greeting": {"type": "string", "maxLength": 16},
            "token": {
                "type": "object",
                "additionalProperties": False,
                "required": ["secretRef"],
                "x-secretRefAllowed": True,
                "properties": {
                    "secretRef": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["provider", "name"],
                        "properties": {"provider": {"type": "string"}, "name": {"type": "string"}},
                    }
                },
            },
        },
    },
}


def uri(name: str) -> str:
    return f"urn:example:test:{name}:1"


def operation(name: str, request: str = "any", response: str = "any", **more: Any) -> dict[str, Any]:
    streaming = {"request": more.pop("streams_request", False), "response": more.pop("streams_response", False)}
    return {
        "name": name,
        "operationVersion": "1.0",
        "requestSchema": {"uri": uri(request), "digest": ""},
        "responseSchema": {"uri": uri(response), "digest": ""},
        "streaming": streaming,
        "idempotent": False,
        "receipts": False,
        **more,
    }


def manifest() -> dict[str, Any]:
    return {
        "manifestSchemaVersion": "urn:switchyard:plugin-manifest:1",
        "plugin": {"pluginId": "org.example.test", "displayName": "Test"},
        "publisher": {"publisherId": "org.example", "displayName": "Example"},
        "packageVersion": "1.0.0",
        "protocol": {"minVersion": "1.0", "maxVersion": "1.2", "features": list(FEATURES)},
        "entryPoints": {"executable": {"path": "run", "arguments": []}},
        "capabilities": [
            {
                "id": "test.basic",
                "version": "1.0.0",
                "operations": [
                    operation("echo", "text", "text"),
                    operation("do"),
                    operation("effect", receipts=True, idempotent=True),
                    operation("old"),
                ],
            },
            {
                "id": "test.stream",
                "version": "1.0.0",
                "operations": [
                    operation("count", "any", "item", streams_response=True),
                    operation("once", "any", "item", streams_response=True, receipts=True, idempotent=True),
                    operation("sum", "item", "any", streams_request=True),
                    operation("relay", "item", "item", streams_request=True, streams_response=True),
                ],
            },
        ],
        "permissions": [
            {"id": "files", "required": False, "scope": "filesystem.read"},
            {"id": "private", "required": False, "scope": "bounded.private-data"},
        ],
        "settings": {"version": "1.0.0", "schema": {"uri": uri("settings"), "digest": ""}},
        "runtime": {"os": ["linux", "macos", "windows"], "architectures": ["x64", "arm64"]},
        "dataDeclarations": {"acceptedClasses": ["public", "internal", "sensitive"]},
        "deprecations": [
            {
                "element": "operation:test.basic/old",
                "deprecatedSince": "2019-01-01T00:00:00Z",
                "sunsetAfter": "2020-01-01T00:00:00Z",
                "replacement": None,
                "behaviorAfterSunset": "error",
            }
        ],
        "provenance": {},
    }


def write_package(directory: Path, document: Optional[dict[str, Any]] = None) -> Path:
    (directory / "schemas").mkdir(parents=True)
    for name, schema in SCHEMAS.items():
        text = json.dumps({"$schema": DIALECT, "$id": uri(name), **schema})
        (directory / "schemas" / f"{name}.json").write_text(text, encoding="utf-8")
    (directory / "plugin.json").write_text(json.dumps(document or manifest()), encoding="utf-8")
    seal(directory)
    return directory


class Bench:
    """A plugin in a fresh directory. do() runs whatever a test wants as an operation."""

    def __init__(self, document: Optional[dict[str, Any]] = None) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="switchyard-python-"))
        self.package = Package.load(write_package(self.directory / "package", document))
        self.state = self.directory / "state"
        self.state.mkdir()
        self.effects = 0
        self.script: Any = None
        self.seen: list[str] = []

    def remove(self) -> None:
        import shutil

        shutil.rmtree(self.directory)

    def plugin(self) -> SessionPlugin:
        plugin = SessionPlugin(self.package, store=ReceiptStore(str(self.state)))

        @plugin.settings
        async def settings(given: dict[str, Any]) -> dict[str, Any]:
            if given.get("greeting") == "forbidden":
                raise SettingsError(SettingsProblem("/greeting", "not this one"))
            if given.get("greeting") == "broken":
                raise RuntimeError("a marker that stays inside")
            return {"greeting": "hello", **given}

        @plugin.operation("test.basic", "echo")
        @plugin.operation("test.basic", "old")
        async def echo(op: Operation) -> Any:
            return op.payload

        @plugin.operation("test.basic", "do")
        async def do(op: Operation) -> Any:
            return await self.script(op)

        @plugin.operation("test.basic", "effect")
        async def effect(op: Operation) -> Any:
            if self.script is not None:
                return await self.script(op)
            self.effects += 1
            op.effect("committed")
            return {"effects": self.effects}

        async def count(op: Operation) -> AsyncIterator[Any]:
            try:
                for n in range(op.payload["to"]):
                    yield {"n": n, "filler": "x" * op.payload.get("size", 0)} if n != op.payload.get("bad") else {"wrong": True}
            except asyncio.CancelledError:
                self.seen.append("cancelled")
                raise
            finally:
                self.seen.append("cleanup")

        async def once(op: Operation) -> AsyncIterator[Any]:
            self.effects += 1
            op.effect("committed")
            for n in range(2):
                yield {"n": n}

        plugin.handle("test.stream", "count", count)
        plugin.handle("test.stream", "once", once)

        @plugin.operation("test.stream", "sum")
        async def total(op: Operation) -> Any:
            return {"sum": sum([item["n"] async for item in op.items])}

        @plugin.operation("test.stream", "relay")
        async def relay(op: Operation) -> AsyncIterator[Any]:
            async for item in op.items:
                yield item

        return plugin


async def hold(op: Operation) -> Any:
    op.progress(ProgressUpdate("holding"))
    await asyncio.Event().wait()


def fails(code: str, **more: Any) -> Any:
    async def script(op: Operation) -> Any:
        raise PluginError(code, "failed as asked", **more)

    return script


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, 60))


def environment(state: os.PathLike[str] | str, more: Iterable[tuple[str, str]] = ()) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "LC_ALL": "C",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SWITCHYARD_PLUGIN_PROTOCOL": "session/1",
        "SWITCHYARD_PLUGIN_STATE": os.fspath(state),
        **dict(more),
    }
