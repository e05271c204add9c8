"""How long one operation of a fresh process takes with the SDK, as a ratio to a child written by hand.

Both children import asyncio and json and exchange the same frames: hello, init, one
request, goAway. The hand-written one checks nothing. They are started in turns, so that
what else the machine does meets both.

    python3 bench/oneshot.py [PAIRS]
    python3 bench/oneshot.py --prepare DIRECTORY

The second form only writes what is started, hand.py, sdk.py and package/, and the host's
side of the exchange, frames, for a benchmark that does the starting itself.
"""

from __future__ import annotations

import compileall
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SDK = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(SDK))

from switchyard_plugin.wire import jcs  # noqa: E402
from switchyard_plugin.wire.envelope import Writer  # noqa: E402
from switchyard_plugin.wire.ids import uuid7  # noqa: E402

BY_HAND = '''
import asyncio, json, struct, sys, uuid
from datetime import datetime, timezone

async def main():
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    sequence = 0

    def send(kind, body, cause):
        nonlocal sequence
        sequence += 1
        frame = json.dumps({
            "protocolVersion": "1.2", "messageType": kind, "messageId": str(uuid.uuid4()), "sequence": sequence,
            "timestampUtc": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "traceId": None, "causationId": cause,
            kind: body, "extensions": {}}).encode()
        sys.stdout.buffer.write(struct.pack(">I", len(frame)) + frame)
        sys.stdout.buffer.flush()

    while True:
        try:
            (size,) = struct.unpack(">I", await reader.readexactly(4))
        except asyncio.IncompleteReadError:
            return
        message = json.loads(await reader.readexactly(size))
        kind, cause = message["messageType"], message["messageId"]
        body = message[kind]
        if kind == "hello":
            send("helloAck", {"protocolVersion": "1.2", "enabledFeatures": ["cancel.v1", "receipt.v1"], "requires": [], "codec": "json",
                "maxFrameBytes": body["maxFrameBytes"], "manifestDigest": "sha256:" + "0" * 64,
                "plugin": {"pluginId": "org.example.bench", "publisherId": "org.example", "packageVersion": "1.0.0"}, "deprecations": []}, cause)
        elif kind == "init":
            send("initAck", {"status": "ready", "capabilities": [{"id": "bench", "version": "1.0.0",
                "operations": [{"name": "echo", "operationVersion": "1.0"}]}]}, cause)
        elif kind == "request":
            send("response", {"requestId": body["requestId"], "operationId": body["operationId"], "payloadClass": "internal",
                "payload": body["payload"]}, cause)

asyncio.run(main())
'''

WITH_SDK = '''
import sys
sys.path.insert(0, {sdk!r})
import asyncio, json
from switchyard_plugin import Operation, SessionPlugin, run

def create_plugin():
    plugin = SessionPlugin()

    @plugin.operation("bench", "echo")
    async def echo(op: Operation):
        return op.payload

    return plugin

run(create_plugin)
'''


def package(directory: Path) -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:example:bench:1",
        "type": "object",
        "additionalProperties": False,
        "required": ["text"],
        "properties": {"text": {"type": "string", "maxLength": 1024, "pattern": "^[a-z ]*$"}},
    }
    (directory / "schemas").mkdir()
    (directory / "schemas" / "text.json").write_text(json.dumps(schema), encoding="utf-8")
    reference = {"uri": "urn:example:bench:1", "digest": jcs.digest(schema)}
    manifest = {
        "manifestSchemaVersion": "urn:switchyard:plugin-manifest:1",
        "plugin": {"pluginId": "org.example.bench", "displayName": "Bench"},
        "publisher": {"publisherId": "org.example", "displayName": "Example"},
        "packageVersion": "1.0.0",
        "protocol": {"minVersion": "1.0", "maxVersion": "1.2", "features": ["cancel.v1", "receipt.v1"]},
        "entryPoints": {"executable": {"path": "run", "arguments": []}},
        "capabilities": [
            {
                "id": "bench",
                "version": "1.0.0",
                "operations": [
                    {
                        "name": "echo",
                        "operationVersion": "1.0",
                        "requestSchema": reference,
                        "responseSchema": reference,
                        "streaming": {"request": False, "response": False},
                        "idempotent": False,
                        "receipts": False,
                    }
                ],
            }
        ],
        "permissions": [],
        "runtime": {"os": ["linux", "macos"], "architectures": ["x64", "arm64"]},
        "provenance": {},
    }
    manifest["provenance"] = {"manifestDigest": jcs.digest(manifest)}
    (directory / "plugin.json").write_text(json.dumps(manifest), encoding="utf-8")


def frames() -> list[bytes]:
    writer = Writer("1.2")
    settings: dict[str, object] = {}
    bodies = [
        (
            "hello",
            {
                "hostVersion": "bench",
                "protocol": {"min": "1.0", "max": "1.2"},
                "requires": [],
                "supports": ["cancel.v1", "receipt.v1"],
                "codecs": ["json"],
                "maxFrameBytes": 8 << 20,
            },
        ),
        (
            "init",
            {
                "instanceId": "bench",
                "grants": [],
                "settings": settings,
                "settingsDigest": jcs.digest(settings),
                "limits": {"requestTimeoutMs": 60_000, "heartbeatIntervalMs": 10_000, "maxInFlight": 1},
                "acceptedClasses": ["internal"],
            },
        ),
        (
            "request",
            {
                "requestId": uuid7(),
                "operationId": uuid7(),
                "idempotencyKey": None,
                "attempt": 1,
                "deadlineUtc": None,
                "capabilityId": "bench",
                "operationName": "echo",
                "operationVersion": "1.0",
                "permissionsGrantId": None,
                "payloadClass": "internal",
                "payload": {"text": "the quick brown fox"},
            },
        ),
        ("goAway", {"lastAcceptedSequence": 3, "reason": "done", "graceMs": 1000}),
    ]
    out = []
    for kind, body in bodies:
        frame = writer.encode(kind, json.dumps(body))
        writer.commit()
        out.append(len(frame).to_bytes(4, "big") + frame)
    return out


def one(command: list[str], directory: Path, environment: dict[str, str], messages: list[bytes]) -> tuple[float, float]:
    """Runs one child through the exchange; returns the seconds that it took, and those that it kept a processor busy."""
    began = time.perf_counter()
    with subprocess.Popen(command, cwd=directory, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None
        for expected, message in zip(("helloAck", "initAck", "response", None), messages):
            child.stdin.write(message)
            child.stdin.flush()
            if expected is not None:
                size = int.from_bytes(child.stdout.read(4), "big")
                answer = json.loads(child.stdout.read(size))
                assert answer["messageType"] == expected, answer
        child.stdin.close()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = status
    assert status == 0, status
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def prepare(work: Path) -> None:
    """Writes both children and the package."""
    # The SDK as an installation has it: with its byte code.
    installed = work / "site"
    shutil.copytree(SDK / "switchyard_plugin", installed / "switchyard_plugin", ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(installed, quiet=1)
    (work / "package").mkdir()
    package(work / "package")
    (work / "hand.py").write_text(BY_HAND, encoding="utf-8")
    (work / "sdk.py").write_text(WITH_SDK.format(sdk=str(installed)), encoding="utf-8")


def main() -> None:
    if sys.argv[1:2] == ["--prepare"]:
        work = Path(sys.argv[2])
        work.mkdir()
        prepare(work)
        (work / "frames").write_bytes(b"".join(frames()))
        return
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    work = Path(tempfile.mkdtemp())
    try:
        prepare(work)
        environment = {
            "PATH": os.environ["PATH"],
            "SWITCHYARD_PLUGIN_PROTOCOL": "session/1",
            "SWITCHYARD_PLUGIN_STATE": str(work),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        messages = frames()
        commands = [[sys.executable, "-I", "-B", str(work / name)] for name in ("hand.py", "sdk.py")]
        times: list[list[tuple[float, float]]] = [[], []]
        for i in range(pairs + 2):
            for which in (0, 1) if i % 2 else (1, 0):
                taken = one(commands[which], work / "package", environment, messages)
                if i >= 2:
                    times[which].append(taken)
        for number, what in enumerate(("from start to end", "processor time")):
            hand, sdk = ([t[number] * 1000 for t in side] for side in times)
            ratio = statistics.median(b / a for a, b in zip(hand, sdk))
            print(
                f"{what}: by hand {statistics.median(hand):.1f} ms, with the SDK {statistics.median(sdk):.1f} ms,"
                f" ratio {ratio:.2f} (median of {pairs} pairs; of the fastest {min(sdk) / min(hand):.2f})"
            )
    finally:
        shutil.rmtree(work)


if __name__ == "__main__":
    main()
