"""A plugin as a process: its streams, its end, its environment."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Optional

from switchyard_plugin.testing import Host
from switchyard_plugin.wire.frames import FrameReader

from .support import Bench, environment

SDK = str(Path(__file__).resolve().parent.parent)

PROGRAM = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
from switchyard_plugin import Operation, SessionPlugin, run

def create_plugin():
    plugin = SessionPlugin()

    async def anything(op: Operation):
        what = op.payload.get("what")
        if what == "print":
            print("to standard output \\u00e9\\U0001f600")
            os.write(1, b"to descriptor 1\\n")
            os.system("echo from a child")
            print("read:", repr(sys.stdin.read()))
        if what == "hold":
            await asyncio.Event().wait()
        if what == "thread":
            await asyncio.to_thread(__import__("time").sleep, 3600)
        if what == "environment":
            return {"isolated": bool(sys.flags.isolated), "written": sys.dont_write_bytecode, "encoding": sys.getfilesystemencoding()}
        return {"text": "\\u00e9\\U0001f600"}

    for capability in plugin.package.manifest.capabilities:
        for spec in capability.operations:
            plugin.handle(spec.capability_id, spec.name, anything)
    return plugin

run(create_plugin)
"""


class ProcessTest(unittest.TestCase):
    def setUp(self) -> None:
        self.bench = Bench()
        self.addCleanup(self.bench.remove)
        self.program = self.bench.directory / "program.py"
        self.program.write_text(PROGRAM, encoding="utf-8")
        self.command = [sys.executable, "-I", "-B", str(self.program), SDK]

    def host(self, more: Optional[dict[str, str]] = None) -> Host:
        variables = environment(self.bench.state, (more or {}).items())
        return Host.of_command(self.command, directory=self.bench.package.directory, state=str(self.bench.state), environment=variables, timeout=60)

    def session(self, test: Any, **options: Any) -> Any:
        async def whole() -> Any:
            async with self.host() as host:
                await host.open(**options)
                return await test(host)

        return asyncio.run(asyncio.wait_for(whole(), 120))

    def test_nothing_reaches_the_protocol(self) -> None:
        async def test(host: Host) -> None:
            self.assertEqual((await host.call("test.basic", "do", {"what": "print"})).payload, {"text": "é😀"})
            self.assertEqual(await host.drain(), 0)

        self.session(test)

    def test_isolated_and_in_the_C_locale(self) -> None:
        async def test(host: Host) -> Any:
            return (await host.call("test.basic", "do", {"what": "environment"})).payload

        found = self.session(test)
        self.assertTrue(found["isolated"] and found["written"])

    def test_terminated(self) -> None:
        async def test(host: Host) -> None:
            call = host.start("test.basic", "do", {"what": "hold"})
            await host.health()
            assert host._process is not None
            host._process.send_signal(signal.SIGTERM)
            self.assertEqual((await host.receive("goAway")).body["lastAcceptedSequence"], 4)
            self.assertEqual((await call.outcome()).kind, "cancelled")
            self.assertEqual(await asyncio.wait_for(host._process.wait(), 60), 0)

        self.session(test)

    def test_a_thread_that_hangs_holds_nobody_up(self) -> None:
        async def test(host: Host) -> None:
            host.start("test.basic", "do", {"what": "thread"})
            await host.health()
            self.assertEqual(await asyncio.wait_for(host.close(), 30), 0)

        self.session(test)

    def test_a_broken_package_says_nothing(self) -> None:
        (Path(self.bench.package.directory) / "schemas" / "text.json").write_text("{}", encoding="utf-8")
        ended = subprocess.run(
            self.command, cwd=self.bench.package.directory, env=environment(self.bench.state), stdin=subprocess.DEVNULL, capture_output=True, timeout=60
        )
        self.assertEqual((ended.returncode, ended.stdout), (1, b""))
        self.assertIn(b"schemas/text.json", ended.stderr)

    def test_another_protocol(self) -> None:
        variables = environment(self.bench.state, {"SWITCHYARD_PLUGIN_PROTOCOL": "session/9"}.items())
        ended = subprocess.run(
            self.command, cwd=self.bench.package.directory, env=variables, stdin=subprocess.DEVNULL, capture_output=True, timeout=60
        )
        self.assertEqual((ended.returncode, ended.stdout), (1, b""))
        self.assertIn(b"session/9", ended.stderr)

    def test_truncated_input(self) -> None:
        ended = subprocess.run(
            self.command, cwd=self.bench.package.directory, env=environment(self.bench.state), input=b"\0\0\0\x05{", capture_output=True, timeout=60
        )
        reader = FrameReader()
        reader.feed(ended.stdout)
        (frame,) = reader.frames()
        self.assertEqual((ended.returncode, json.loads(frame)["error"]["code"]), (1, "frame.invalid"))

    def test_input_from_a_file(self) -> None:
        with tempfile.TemporaryFile() as file:
            file.write(b"\0\0\0\0")
            file.seek(0)
            ended = subprocess.run(
                self.command, cwd=self.bench.package.directory, env=environment(self.bench.state), stdin=file, capture_output=True, timeout=60
            )
        self.assertEqual(ended.returncode, 1)
        self.assertIn(b"frame.invalid", ended.stdout)

    def test_unix_socket(self) -> None:
        async def whole() -> None:
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "s")
                connected: asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = asyncio.get_running_loop().create_future()
                server = await asyncio.start_unix_server(lambda r, w: connected.set_result((r, w)), path)
                process = await asyncio.create_subprocess_exec(
                    *self.command,
                    cwd=self.bench.package.directory,
                    env=environment(self.bench.state, {"SWITCHYARD_PLUGIN_SOCKET": path}.items()),
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=asyncio.subprocess.PIPE,
                )
                _, writer = await asyncio.wait_for(connected, 60)
                fd = os.dup(writer.get_extra_info("socket").fileno())
                writer.transport.pause_reading()
                async with Host(fd, fd, 60) as host:
                    await host.open()
                    self.assertEqual((await host.call("test.basic", "do", {})).payload, {"text": "é😀"})
                    host.send("goAway", {"lastAcceptedSequence": 1, "reason": "", "graceMs": 0})
                    await host._transport.finish(1)
                    writer.transport.abort()
                server.close()
                out, _ = await asyncio.wait_for(process.communicate(), 60)
                self.assertEqual((process.returncode, out), (0, b""))

        asyncio.run(asyncio.wait_for(whole(), 120))

    def test_the_launcher(self) -> None:
        (Path(self.bench.package.directory) / "entry.py").write_text(PROGRAM.replace("run(create_plugin)\n", "").replace("sys.argv[1]", repr(SDK)), encoding="utf-8")
        start = f"import sys; sys.path[:0] = ['.', {SDK!r}]; from switchyard_plugin.launch import main; main()"
        self.command = [sys.executable, "-I", "-B", "-c", start, "entry", "create_plugin", "3.11"]

        async def test(host: Host) -> None:
            self.assertEqual((await host.call("test.basic", "do", {})).payload, {"text": "é😀"})
            self.assertEqual(await host.drain(), 0)

        self.session(test)
        for words, says in ((["entry", "create_plugin", "9.1"], b"needs Python 9.1"), (["entry", "gone"], b"cannot be loaded"), (["entry"], b"usage")):
            ended = subprocess.run(
                [*self.command[:5], *words], cwd=self.bench.package.directory, env=environment(self.bench.state), capture_output=True, timeout=60
            )
            self.assertNotEqual(ended.returncode, 0)
            self.assertIn(says, ended.stderr)


if __name__ == "__main__":
    unittest.main()
