"""The call protocol: the transcripts that every implementation replays, and a process."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
from datetime import datetime
from pathlib import Path
from typing import Any

from switchyard_plugin import (
    Action, CallError, CallPlugin, Fact, HealthResult, InspectRequest, InspectResult, OperateRequest, OperateResult, Project, bad_input, not_granted, unknown_action,
)  # fmt: skip
from switchyard_plugin.call_errors import CallManifestError
from switchyard_plugin.call_words import MAX_MESSAGE_BYTES
from switchyard_plugin.transport import Transport

from .support import ROOT

TRANSCRIPTS = ROOT / "testdata" / "transcripts" / "call"

MANIFEST = {
    "schemaVersion": "switchyard.plugin-manifest/v1", "id": "sample", "name": "Sample", "version": "1.0", "protocolVersion": "switchyard.plugin/v1",
    "executable": "run", "arguments": [], "capabilities": ["project.inspect", "project.operate"],
    "requestedScopes": ["project.metadata.read", "project.files.read", "project.operate"],
}  # fmt: skip
INITIALIZE = {"protocolVersion": "switchyard.plugin/v1", "hostVersion": "1", "grantedScopes": ["project.metadata.read", "project.operate"]}
PROJECT = {"id": "p", "displayName": "P"}


def request(number: Any, method: str, params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


def serve(plugin: CallPlugin, data: bytes, *, wait: float = 0) -> tuple[list[Any], int]:
    """Sends data, closes the input after wait seconds, and returns the answers and the exit status."""

    async def whole() -> tuple[bytes, int]:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        fd = theirs.detach()
        serving = asyncio.get_running_loop().create_task(plugin.serve(Transport(fd, fd)))
        await asyncio.get_running_loop().sock_sendall(ours, data)
        await asyncio.sleep(wait)
        ours.shutdown(socket.SHUT_WR)
        out = b""
        reading = asyncio.get_running_loop()
        status = -1
        while True:
            receive = asyncio.ensure_future(reading.sock_recv(ours, 1 << 20))
            done, _ = await asyncio.wait([receive, serving], return_when=asyncio.FIRST_COMPLETED)
            if receive in done:
                out += receive.result()
                if not receive.result():
                    break
            else:
                status = serving.result()
                os.close(fd)
                out += await receive
                break
        ours.close()
        return out, status

    with contextlib.redirect_stderr(io.StringIO()):
        out, status = asyncio.run(asyncio.wait_for(whole(), 60))
    return [json.loads(line) for line in out.splitlines()], status


class Scripted:
    """Does what a transcript says."""

    def __init__(self, manifest: bytes, script: list[Any]) -> None:
        self.script = script
        self.plugin = CallPlugin(manifest)

        @self.plugin.health
        async def health() -> HealthResult:
            r = self.next()
            return HealthResult(r["status"], r.get("message", ""), self.moment(r.get("checkedAt")))

        @self.plugin.inspect
        async def inspect(request: InspectRequest) -> InspectResult:
            r = self.next()
            facts = [Fact(f.get("id", ""), f.get("label", ""), f.get("value", ""), f.get("source", ""), f.get("warning", "")) for f in r.get("facts") or []]
            actions = [Action(a.get("id", ""), a.get("name", ""), a.get("description", ""), a.get("risk", "")) for a in r.get("actions") or []]
            return InspectResult(r.get("summary", ""), facts, actions, r.get("warnings") or [], self.moment(r.get("observedAt")))

        @self.plugin.operate
        async def operate(request: OperateRequest) -> OperateResult:
            r = self.next()
            return OperateResult(r.get("status", ""), r.get("summary", ""), r.get("output", {}))

    def moment(self, text: Any) -> Any:
        return datetime.fromisoformat(text) if text else None

    def next(self) -> Any:
        step = self.script.pop(0)
        if "panic" in step:
            raise RuntimeError(step["panic"])
        if "error" in step:
            raise CallError(step["error"]["message"], step["error"]["code"])
        return step["result"]


class TranscriptTest(unittest.TestCase):
    def test_transcripts(self) -> None:
        paths = sorted(TRANSCRIPTS.glob("*.txtar"))
        if not TRANSCRIPTS.exists():
            self.skipTest("the transcripts are not here")
        self.assertGreater(len(paths), 10)
        for path in paths:
            with self.subTest(path.name):
                files: dict[str, str] = {}
                name = ""
                for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
                    if line.startswith("-- ") and line.endswith(" --\n"):
                        name = line[3:-4]
                        files[name] = ""
                    elif name:
                        files[name] += line
                scripted = Scripted(files["plugin.json"].encode(), [json.loads(s) for s in files.get("returns", "").splitlines()])
                lines = files["exchange"].splitlines(keepends=True)
                answers, status = serve(scripted.plugin, "".join(s[2:] for s in lines if s[0] == ">").encode())
                self.assertEqual(status, 0)
                self.assertEqual(scripted.script, [])
                wanted = [json.loads(s[2:]) for s in lines if s[0] == "<"]
                self.assertEqual(len(answers), len(wanted))
                for got, want in zip(answers, wanted):
                    # The messages of errors are free text; what one implementation cannot say alike is told by its code.
                    if "error" in want:
                        self.assertEqual((got["id"], got["error"]["code"]), (want["id"], want["error"]["code"]), got)
                    else:
                        self.assertEqual(self.comparable(got), self.comparable(want))

    def comparable(self, answer: Any) -> Any:
        """Times are compared as moments."""
        result = dict(answer["result"])
        for name in ("checkedAt", "observedAt"):
            if name in result:
                result[name] = datetime.fromisoformat(result[name])
        return {**answer, "result": result}


class CallTest(unittest.TestCase):
    def plugin(self) -> CallPlugin:
        plugin = CallPlugin(json.dumps(MANIFEST).encode())

        @plugin.inspect
        async def inspect(request: InspectRequest) -> InspectResult:
            return InspectResult("fine", [Fact("a", "A", "", "here")], warnings=["\ud800"])

        @plugin.operate
        async def operate(request: OperateRequest) -> OperateResult:
            if request.action == "hold":
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    return OperateResult("failed", "cancelled")
            if request.action == "forget":
                await asyncio.Event().wait()
            if request.action == "bad":
                raise bad_input("x" * 3000)
            if request.action == "scope":
                raise not_granted("project.files.read")
            if request.action == "large":
                return OperateResult("succeeded", "large", "x" * MAX_MESSAGE_BYTES)
            raise unknown_action(request.action)

        return plugin

    def operate(self, action: str, **options: Any) -> Any:
        data = request(1, "initialize", INITIALIZE) + request(2, "project.operate", {"project": PROJECT, "action": action, "input": {}})
        answers, status = serve(self.plugin(), data, **options)
        self.assertEqual(status, 0)
        return answers[1]

    def test_errors(self) -> None:
        self.assertEqual(self.operate("bad")["error"]["code"], -32602)
        self.assertEqual(len(self.operate("bad")["error"]["message"]), 1024)
        self.assertEqual(self.operate("scope")["error"], {"code": -32003, "message": str(not_granted("project.files.read"))})
        self.assertEqual(self.operate("other")["error"], {"code": -32602, "message": 'unknown action "other"'})
        self.assertEqual(self.operate("large")["error"]["code"], -32603)

    def test_health(self) -> None:
        plugin = self.plugin()
        data = request(1, "initialize", INITIALIZE) + request(2, "plugin.health", {})
        self.assertEqual(serve(plugin, data)[0][1]["result"]["status"], "healthy")

        @plugin.health
        async def health() -> HealthResult:
            return HealthResult("degraded", "slow")

        found = serve(plugin, data)[0][1]["result"]
        self.assertEqual((found["status"], found["message"]), ("degraded", "slow"))

    def test_granted(self) -> None:
        for request_ in (InspectRequest(Project("p", "P"), ("project.operate",)), OperateRequest(Project("p", "P"), "x", {}, ("project.operate",))):
            self.assertEqual((request_.granted("project.operate"), request_.granted("project.files.read")), (True, False))

    def test_cancellation(self) -> None:
        self.assertEqual(self.operate("hold", wait=0.2)["result"]["summary"], "cancelled")
        self.assertEqual(self.operate("forget", wait=0.2)["error"]["code"], -32000)

    def test_lines(self) -> None:
        long = b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * MAX_MESSAGE_BYTES + b'"}\n'
        answers, status = serve(self.plugin(), b"\n" + long + b"[]\n" + request(-0.0, "x", {}) + request("a", "x", {}) + request(7, "initialize", INITIALIZE)[:-1])
        self.assertEqual([a["id"] for a in answers], [None, None, None, None, None, 7])
        self.assertEqual({a["error"]["code"] for a in answers[:5]}, {-32700})
        self.assertEqual(status, 0)

    def test_manifests(self) -> None:
        for change in ({"id": "Sample"}, {"schemaVersion": "x"}, {"capabilities": []}, {"capabilities": ["project.x"]}, {"requestedScopes": []}, {"extra": 1}, {"name": " "}):
            with self.assertRaises(CallManifestError):
                CallPlugin(json.dumps({**MANIFEST, **change}).encode())
        with self.assertRaises(ValueError):
            CallPlugin(json.dumps(MANIFEST).encode()).check()

    def test_a_process(self) -> None:
        program = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from switchyard_plugin import *\n"
            "p = CallPlugin()\n"
            "@p.inspect\n"
            "async def inspect(request):\n"
            "    print('this is no answer'); return InspectResult('fine')\n"
            "run(p)\n"
        )
        manifest = {**MANIFEST, "capabilities": ["project.inspect"], "requestedScopes": ["project.metadata.read"]}
        initialize = {**INITIALIZE, "grantedScopes": ["project.metadata.read"]}
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "plugin.json").write_text(json.dumps(manifest), encoding="utf-8")
            sdk = str(Path(__file__).resolve().parent.parent)
            ended = subprocess.run(
                [sys.executable, "-I", "-B", "-c", program, sdk],
                cwd=directory,
                env={"PATH": os.environ["PATH"], "LC_ALL": "C", "SWITCHYARD_PLUGIN_PROTOCOL": "switchyard.plugin/v1"},
                input=request(1, "initialize", initialize) + request(2, "project.inspect", {"project": PROJECT}),
                capture_output=True,
                timeout=60,
            )
        self.assertEqual(ended.returncode, 0, ended.stderr)
        self.assertEqual([json.loads(s)["id"] for s in ended.stdout.splitlines()], [1, 2])
        self.assertIn(b"this is no answer", ended.stderr)


if __name__ == "__main__":
    unittest.main()
