"""How a session opens, tells its health, and ends. A host in the same process speaks to the plugin over a pair of sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import unittest
from typing import Any, Awaitable, Callable

from switchyard_plugin import HandlerError, Operation, SessionPlugin
from switchyard_plugin.testing import Host, ProtocolViolation
from switchyard_plugin.wire.frames import encode
from switchyard_plugin.wire.ids import uuid7

from .session_case import MARKER, SessionCase
from .support import hold, manifest, run


class OpeningTest(SessionCase):
    def test_helloAck_and_initAck(self) -> None:
        async def test(host: Host) -> None:
            ack = host.frames[0].body
            self.assertEqual(ack["protocolVersion"], "1.2")
            self.assertEqual(ack["requires"], ["flow.credit.v1"])
            self.assertEqual(ack["enabledFeatures"], self.bench.package.manifest.document["protocol"]["features"])
            self.assertEqual(ack["manifestDigest"], self.bench.package.manifest.manifest_digest)
            self.assertNotIn("replacement", ack["deprecations"][0])
            self.assertEqual([c["id"] for c in host.frames[1].body["capabilities"]], ["test.basic", "test.stream"])
            self.assertTrue(all(f.causation_id for f in host.frames))

        self.session(test)

    def test_downgrade(self) -> None:
        async def test(host: Host) -> None:
            self.assertEqual(host.frames[0].body["protocolVersion"], "1.1")
            self.assertNotIn("receipt.v1", host.frames[0].body["enabledFeatures"])
            self.assertIsNone((await host.call("test.basic", "effect", {})).receipt)

        self.session(test, max_version="1.1")

    def fatal(self, test: Callable[[Host], Awaitable[Any]], *, opened: bool = False) -> dict[str, Any]:
        """Returns the one fatal error that a session ends with."""

        async def whole() -> dict[str, Any]:
            host = Host.of(self.bench.plugin())
            await host.__aenter__()
            if opened:
                await host.open()
            with contextlib.suppress(ProtocolViolation):
                await test(host)
            error = dict((await host.receive("error")).body)
            await asyncio.sleep(0.05)
            self.assertEqual([f.type for f in host.frames].count("error"), 1)
            self.assertEqual(await host.close(), 1)
            self.assertEqual((error["severity"], error["requestId"], error["operationId"]), ("fatal", None, None))
            return error

        return run(whole())  # type: ignore[no-any-return]

    def test_refusals(self) -> None:
        async def hello(host: Host, *versions: str, **more: Any) -> None:
            await host.hello(*versions, more.get("requires", ()), (), 1 << 20)

        error = self.fatal(lambda h: hello(h, "1.0", "1.0"))
        self.assertEqual(error["code"], "unsupported_protocol")
        self.assertEqual(error["supportedProtocol"], {"min": "1.1", "max": "1.2"})
        self.assertEqual(error["recommendedProtocolVersion"], "1.1")
        self.assertEqual(self.fatal(lambda h: hello(h, "2.0", "2.1"))["code"], "unsupported_protocol")
        self.assertEqual(self.fatal(lambda h: hello(h, "1.2", "1.0"))["code"], "unsupported_protocol")
        self.assertEqual(self.fatal(lambda h: hello(h, "1.0", "1.2", requires=["made.up.v1"]))["code"], "missing_required_feature")

    def test_settings_that_are_refused(self) -> None:
        for settings, code in (
            ({"greeting": 5}, "schema.mismatch"),
            ({"greetings": "x"}, "schema.unknown_member"),
            ({"greeting": "forbidden"}, "invalid_argument"),
            ({"greeting": "broken"}, "internal"),
        ):
            with self.subTest(code):
                self.assertEqual(self.fatal(lambda h: h.open(settings=settings))["code"], code)
        self.assertNotIn("a marker that stays inside", self.log.getvalue())

    def test_settings_digest(self) -> None:
        async def test(host: Host) -> None:
            await host.hello("1.0", "1.2", (), (), 1 << 20)
            body = {
                "instanceId": "i",
                "grants": [],
                "settings": {},
                "settingsDigest": "sha256:" + "0" * 64,
                "limits": {"requestTimeoutMs": 1, "heartbeatIntervalMs": 1, "maxInFlight": 1},
                "acceptedClasses": [],
            }
            await host.ask("init", body, "initAck")

        self.assertEqual(self.fatal(test)["code"], "invalid_argument")

    def test_faults_of_frames(self) -> None:
        def sends(data: bytes | Callable[[Host], bytes]) -> Callable[[Host], Awaitable[None]]:
            async def test(host: Host) -> None:
                host.send_raw(data if isinstance(data, bytes) else data(host))

            return test

        def beat(**change: Any) -> Callable[[Host], bytes]:
            def make(host: Host) -> bytes:
                members = json.loads(host.encode("heartbeat", {"nonce": "n"}))
                members.update(change)
                return encode(json.dumps(members).encode())

            return make

        for data, code in (
            (b"\0\0\0\0", "frame.invalid"),
            (b"\xff\xff\xff\xff", "frame.invalid"),
            (b"\x7f\xff\xff\xff", "frame.too_large"),
            (encode(b"{"), "json.syntax"),
            (encode(b'{"a":1,"a":1}'), "json.duplicate_name"),
            (encode(b'"\xff"'), "json.invalid_unicode"),
            (encode(b"[" * 65 + b"]" * 65), "json.limit"),
            (encode(b"1e999"), "json.number"),
            (beat(extra=1), "envelope.invalid"),
            (beat(protocolVersion="1.1"), "envelope.invalid"),
            (beat(sequence=1), "sequence.violation"),
            (lambda h: h.encode("health", {"status": "healthy", "updatedAtUtc": "2026-01-01T00:00:00Z"}), "state.violation"),
            (lambda h: h.encode("hello", {}), "state.violation"),
            (lambda h: h.encode("init", {}), "state.violation"),
            (lambda h: h.encode("cancel", {"requestId": uuid7(), "reason": ""}), "state.violation"),
        ):
            with self.subTest(code):
                framed = data if isinstance(data, bytes) else (lambda h, d=data: d(h) if d(h)[:1] == b"\0" else encode(d(h)))
                self.assertEqual(self.fatal(sends(framed), opened=True)["code"], code)

    def test_a_message_twice(self) -> None:
        async def test(host: Host) -> None:
            frame = json.loads(host.encode("heartbeat", {"nonce": "n"}))
            host.send_raw(encode(json.dumps(frame).encode()))
            frame["sequence"] += 1
            host.send_raw(encode(json.dumps(frame).encode()))

        self.assertEqual(self.fatal(test, opened=True)["code"], "envelope.invalid")

    def test_before_hello_and_init(self) -> None:
        async def request(host: Host) -> None:
            host.start("test.basic", "do", {})

        async def early(host: Host) -> None:
            await host.hello("1.0", "1.2", (), (), 1 << 20)
            host.start("test.basic", "do", {})

        self.assertEqual(self.fatal(request)["code"], "state.violation")
        self.assertEqual(self.fatal(early)["code"], "state.violation")

    def test_every_operation_needs_a_handler(self) -> None:
        with self.assertRaises(HandlerError):
            SessionPlugin(self.bench.package).check()
        plugin = SessionPlugin(self.bench.package)
        plugin.handle("test.basic", "do", hold)
        with self.assertRaises(HandlerError):
            plugin.handle("test.basic", "do", hold)


class HealthTest(SessionCase):
    def test_health_and_watch(self) -> None:
        async def whole() -> None:
            plugin = self.bench.plugin()
            async with Host.of(plugin) as host:
                await host.open()
                self.assertEqual((await host.health(watch=True))["status"], "healthy")
                plugin.set_health("degraded", "the disk is slow")
                async with asyncio.timeout(5):
                    while host.frames[-1].body.get("status") != "degraded":
                        await asyncio.sleep(0.01)
                self.assertEqual(host.frames[-1].body["message"], "the disk is slow")
                count = len(host.frames)
                plugin.set_health("degraded", "the disk is slow")
                host.send("heartbeatAck", {"nonce": "nobody asked"})
                host.send("heartbeat", {"nonce": "n1"})
                self.assertEqual((await host.receive("heartbeatAck")).body, {"nonce": "n1"})
                self.assertEqual([f.type for f in host.frames[count:]], ["heartbeatAck"])
                with self.assertRaises(ValueError):
                    plugin.set_health("tired")

        run(whole())

    def test_a_handler_of_ones_own(self) -> None:
        async def whole() -> None:
            plugin = self.bench.plugin()

            @plugin.health
            async def health() -> Any:
                raise RuntimeError(MARKER)

            async with Host.of(plugin) as host:
                await host.open()
                self.assertEqual((await host.health())["status"], "unhealthy")

        run(whole())
        self.assertNotIn(MARKER, self.log.getvalue())

    def test_settings(self) -> None:
        async def test(host: Host) -> None:
            good = await host.validate_settings({})
            self.assertEqual(good, {"valid": True, "normalized": {"greeting": "hello"}, "problems": []})
            for settings, path in (({"greeting": "forbidden"}, "/greeting"), ({"greeting": 5}, "/greeting"), ({"x": 1}, "/x")):
                answer = await host.validate_settings(settings)
                self.assertEqual((answer["valid"], answer["problems"][0]["path"], "normalized" in answer), (False, path, False))

        self.session(test)


class EndTest(SessionCase):
    def test_goaway_drains(self) -> None:
        async def slow(op: Operation) -> Any:
            await asyncio.sleep(0.1)
            return "done"

        self.bench.script = slow

        async def test(host: Host) -> None:
            call = host.start("test.basic", "do", {})
            host.send("goAway", {"lastAcceptedSequence": 2, "reason": "", "graceMs": 5000})
            self.assertEqual((await host.call("test.basic", "do", {})).code, "unavailable")
            host.send("heartbeat", {"nonce": "n"})
            await host.receive("heartbeatAck")
            self.assertEqual((await call.outcome()).payload, "done")
            self.assertEqual(await host.close(), 0)

        self.session(test)

    def test_the_grace_ends(self) -> None:
        self.bench.script = hold

        async def test(host: Host) -> None:
            call = host.start("test.basic", "do", {})
            await call.wait_for_progress()
            host.send("goAway", {"lastAcceptedSequence": 2, "reason": "", "graceMs": 50})
            self.assertEqual((await call.outcome()).kind, "cancelled")
            self.assertEqual(await host.close(), 0)

        self.session(test)

    def test_the_input_ends_before_the_grace(self) -> None:
        async def slow(op: Operation) -> Any:
            await asyncio.sleep(0.1)
            self.bench.seen.append("done")

        self.bench.script = slow

        async def test(host: Host) -> None:
            host.start("test.basic", "do", {})
            host.send("goAway", {"lastAcceptedSequence": 2, "reason": "", "graceMs": 60_000})
            self.assertEqual(await host.close(), 0)
            self.assertEqual(self.bench.seen, ["done"])

        self.session(test)

    def test_the_end_of_the_input_cancels(self) -> None:
        cleaned: list[int] = []

        async def script(op: Operation) -> Any:
            try:
                await hold(op)
            finally:
                cleaned.append(1)

        self.bench.script = script

        async def test(host: Host) -> None:
            call = host.start("test.basic", "do", {})
            await call.wait_for_progress()
            self.assertEqual(await host.close(), 0)
            self.assertEqual(cleaned, [1])

        self.session(test)

    def test_a_fatal_error_of_the_host(self) -> None:
        async def test(host: Host) -> None:
            host.send("error", {"code": "identity.mismatch", "message": "", "retryable": False, "blameDomain": "plugin", "severity": "fatal", "requestId": None, "operationId": None})
            assert host._serving is not None
            self.assertEqual(await asyncio.wait_for(asyncio.shield(host._serving), 5), 1)

        self.session(test)


class HeartbeatRequiredTest(SessionCase):
    document = {**manifest(), "lifecycle": {"requiresHeartbeat": True}}

    def test_required_features(self) -> None:
        async def test(host: Host) -> None:
            self.assertEqual(host.frames[0].body["requires"], ["flow.credit.v1", "heartbeat.v1"])

        self.session(test)


if __name__ == "__main__":
    unittest.main()
