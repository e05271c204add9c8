"""Sessions, from the outside: a host in the same process speaks to a plugin over a pair of sockets."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import time
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any, Awaitable, Callable

from switchyard_plugin import Grant, HandlerError, Limits, Operation, PluginError, ProgressUpdate, SessionPlugin
from switchyard_plugin.testing import Host, ProtocolViolation
from switchyard_plugin.wire.frames import encode
from switchyard_plugin.wire.ids import uuid7

from .support import Bench, fails, hold, manifest, run

MARKER = "hunter2-the-marker"


class SessionCase(unittest.TestCase):
    document: Any = None

    def setUp(self) -> None:
        self.bench = Bench(self.document)
        self.addCleanup(self.bench.remove)
        self.log = io.StringIO()
        catch = contextlib.redirect_stderr(self.log)
        catch.__enter__()
        self.addCleanup(catch.__exit__, None, None, None)

    def session(self, test: Callable[[Host], Awaitable[Any]], **options: Any) -> Any:
        async def whole() -> Any:
            async with Host.of(self.bench.plugin()) as host:
                await host.open(**options)
                return await test(host)

        return run(whole())

    def do(self, script: Callable[[Operation], Awaitable[Any]], **options: Any) -> Any:
        """Runs one operation that does what script does, and returns how it ended."""
        self.bench.script = script
        return self.session(lambda host: host.call("test.basic", "do", {}, **options))


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


class RequestTest(SessionCase):
    def test_unary(self) -> None:
        async def test(host: Host) -> None:
            outcome = await host.call("test.basic", "echo", {"text": "grüß 😀"})
            self.assertEqual((outcome.kind, outcome.payload), ("response", {"text": "grüß 😀"}))
            self.assertEqual(host.frames[-1].body["payloadClass"], "internal")

        self.session(test)

    def test_refusals_in_their_order(self) -> None:
        past = datetime.now(timezone.utc) - timedelta(seconds=1)
        grants = [
            Grant("g-files", "files", "filesystem.read"),
            Grant("g-old", "private", "bounded.private-data", past),
        ]

        async def test(host: Host) -> None:
            for arguments, options, code, blame in (
                (("test.basic", "gone"), {"version": "9.9"}, "unknown_operation", "host"),
                (("gone.x", "do"), {}, "unknown_operation", "host"),
                (("test.basic", "old"), {"version": "1.1"}, "unsupported_operation_version", "host"),
                (("test.basic", "old"), {"grant_id": "none"}, "deprecated.sunset", "host"),
                (("test.basic", "echo"), {"grant_id": "none", "payload_class": "secret"}, "permission_denied", "host"),
                (("test.basic", "echo"), {"grant_id": "g-old"}, "grant.expired", "host"),
                (("test.basic", "echo"), {"payload_class": "secret", "deadline": past}, "payload_class.denied", "host"),
                (("test.basic", "echo"), {"payload_class": "sensitive"}, "payload_class.denied", "host"),
                (("test.basic", "echo"), {"deadline": past, "payload": 5}, "deadline_exceeded", "environment"),
                (("test.basic", "echo"), {"response_stream": True, "payload": 5}, "invalid_argument", "host"),
                (("test.stream", "count"), {}, "invalid_argument", "host"),
                (("test.basic", "echo"), {"payload": {"text": 5}}, "schema.mismatch", "host"),
                (("test.basic", "echo"), {"payload": {"text": "x", "more": 1}}, "schema.unknown_member", "host"),
                (("test.stream", "sum"), {"payload": {}, "request_stream": True}, "schema.mismatch", "host"),
                (("test.basic", "echo"), {"attempt": 0, "payload": {"text": ""}}, "schema.mismatch", "host"),
                (("test.basic", "echo"), {"secret": 1, "payload": {"text": ""}}, "schema.unknown_member", "host"),
            ):
                with self.subTest(code, options=options):
                    error = (await host.call(*arguments, **options)).error
                    assert error is not None
                    self.assertEqual((error["code"], error["blameDomain"], error["severity"]), (code, blame, "error"))
            self.assertEqual((await host.call("test.basic", "echo", {"text": "still here"}, grant_id="g-files")).kind, "response")

        self.session(test, grants=grants, accepted_classes=["public", "internal", "sensitive"])

    def test_private_classes_need_a_grant(self) -> None:
        async def test(host: Host) -> None:
            self.assertEqual((await host.call("test.basic", "echo", {"text": ""}, payload_class="sensitive")).kind, "response")

        grant = Grant("g", "private", "bounded.private-data")
        self.session(test, grants=[grant], accepted_classes=["internal", "sensitive"])

    def test_in_flight_and_order(self) -> None:
        self.bench.script = hold

        async def test(host: Host) -> None:
            first = host.start("test.basic", "do", {})
            second = host.start("test.basic", "do", {})
            self.assertEqual((await host.call("test.basic", "do", {})).code, "resource_exhausted")
            second.cancel()
            self.assertEqual((await second.outcome()).kind, "cancelled")
            self.assertEqual((await host.call("test.basic", "echo", {"text": ""})).kind, "response")
            first.cancel()
            self.assertEqual((await first.outcome()).kind, "cancelled")

        self.session(test, limits=Limits(60_000, 10_000, 2))

    def test_context(self) -> None:
        seen: list[Operation] = []

        async def script(op: Operation) -> Any:
            seen.append(op)
            return [op.grant("files").scope, [g.permission_id for g in op.grants], op.settings["greeting"], op.secrets, op.secret("/token")]

        self.bench.script = script
        deadline = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)

        async def test(host: Host) -> Any:
            return await host.call("test.basic", "do", {"a": 1}, attempt=3, deadline=deadline, secrets={"/token": "s"}, grant_id="g")

        outcome = self.session(test, settings={}, grants=[Grant("g", "files", "filesystem.read")])
        self.assertEqual(outcome.payload, ["filesystem.read", ["files"], "hello", ["/token"], "s"])
        context = seen[0].context
        self.assertEqual((context.attempt, context.deadline_utc, context.permissions_grant_id, context.retention), (3, deadline, "g", "short"))
        self.assertEqual((context.capability_id, context.operation_name, context.operation_version), ("test.basic", "do", "1.0"))

    def test_what_is_not_granted(self) -> None:
        async def script(op: Operation) -> Any:
            op.grant("files")

        async def missing(op: Operation) -> Any:
            op.secret("/token")

        self.assertEqual(self.do(script).code, "permission_denied")
        self.assertEqual(self.do(missing).code, "secret.unresolved")

    def test_errors_of_handlers(self) -> None:
        self.assertEqual(self.do(fails("unavailable")).error["retryable"], True)
        self.assertEqual(self.do(fails("unavailable", retryable=False)).error["retryable"], False)
        self.assertEqual(self.do(fails("conflict", details={"a": 1})).error["details"], {"a": 1})
        for code in ("state.violation", "made.up", "json.limit", "flow_control_violation"):
            self.assertEqual(self.do(fails(code)).code, "internal")

    def test_what_a_handler_raised_stays_inside(self) -> None:
        async def script(op: Operation) -> Any:
            raise RuntimeError(MARKER)

        error = self.do(script).error
        self.assertEqual((error["code"], error["blameDomain"]), ("internal", "plugin"))
        self.assertNotIn(MARKER, json.dumps(error) + self.log.getvalue())
        self.do(script, diagnosticPolicy="explicit-debug")
        self.assertIn(MARKER, self.log.getvalue())

    def test_secrets_stay_inside(self) -> None:
        async def tells(op: Operation) -> Any:
            raise PluginError("unavailable", f"refused {op.secret('/token')}", details={"token": op.secret("/token")})

        async def raises(op: Operation) -> Any:
            raise RuntimeError(op.secret("/token"))

        for script in (tells, raises):
            error = self.do(script, secrets={"/token": MARKER}, diagnosticPolicy="explicit-debug").error
            self.assertNotIn(MARKER, json.dumps(error))
            self.assertNotIn(MARKER, self.log.getvalue())

    def test_results(self) -> None:
        async def no_json(op: Operation) -> Any:
            return {"a": object()}

        async def too_large(op: Operation) -> Any:
            return ["x" * (1 << 20)] * 9

        self.assertEqual(self.do(no_json).code, "internal")
        self.assertEqual(self.do(too_large).code, "resource_exhausted")
        self.bench.script = too_large

    def test_bodies_that_are_broken(self) -> None:
        async def test(host: Host) -> None:
            for kind, body in (("request", {}), ("healthCheck", {"watch": "yes"}), ("receiptQuery", {"receiptId": 1}), ("settingsValidate", {"settings": []})):
                before = len(host.frames)
                host.send(kind, body)
                error = (await host.receive("error", before)).body
                self.assertEqual((error["code"], error["severity"], error["requestId"]), ("schema.mismatch", "error", None))

        self.session(test)


class CancellationTest(SessionCase):
    def test_cancel(self) -> None:
        cleaned: list[str] = []

        async def script(op: Operation) -> Any:
            try:
                await hold(op)
            finally:
                await asyncio.sleep(0.05)
                cleaned.append("cleaned")

        self.bench.script = script

        async def test(host: Host) -> None:
            call = host.start("test.basic", "do", {})
            await call.wait_for_progress()
            call.cancel()
            call.cancel()
            outcome = await call.outcome()
            self.assertEqual((outcome.kind, cleaned), ("cancelled", ["cleaned"]))
            call.cancel()
            await host.health()
            self.assertEqual([f.type for f in host.frames].count("cancelAck"), 3)

        self.session(test)

    def test_who_wins_the_race(self) -> None:
        def ends(with_: Callable[[], Any]) -> Callable[[Operation], Awaitable[Any]]:
            async def script(op: Operation) -> Any:
                try:
                    await hold(op)
                except asyncio.CancelledError:
                    return with_()

            return script

        def fail() -> Any:
            raise PluginError("internal", "failed while cancelled")

        for script, kind in ((ends(lambda: "done"), "response"), (ends(fail), "error")):
            self.bench.script = script

            async def test(host: Host) -> Any:
                call = host.start("test.basic", "do", {})
                await call.wait_for_progress()
                call.cancel()
                return await call.outcome()

            self.assertEqual(self.session(test).kind, kind)

    def test_cancel_in_the_same_breath(self) -> None:
        """A cancel that comes before the handler has begun is not lost, and the handler does not begin."""
        began: list[int] = []

        async def script(op: Operation) -> Any:
            began.append(1)

        self.bench.script = script

        async def test(host: Host) -> None:
            for _ in range(200):
                call = host.start("test.basic", "do", {})
                call.cancel()
                self.assertIn((await call.outcome()).kind, ("cancelled", "response"))

        self.session(test)

    def test_deadline(self) -> None:
        async def script(op: Operation) -> Any:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(10)
            return "too late"

        soon = datetime.now(timezone.utc) + timedelta(seconds=0.3)
        self.assertEqual(self.do(script, deadline=soon).code, "deadline_exceeded")

    def test_the_hosts_limit_is_a_deadline(self) -> None:
        self.bench.script = hold
        outcome = self.session(lambda h: h.call("test.basic", "do", {}), limits=Limits(50, 10_000, 1))
        self.assertEqual(outcome.code, "deadline_exceeded")

    def test_a_handler_that_cancels_itself(self) -> None:
        async def script(op: Operation) -> Any:
            raise asyncio.CancelledError

        self.assertEqual(self.do(script).code, "internal")


class StreamTest(SessionCase):
    def test_response_stream(self) -> None:
        async def test(host: Host) -> None:
            outcome = await host.call("test.stream", "count", {"to": 500}, response_stream=True)
            self.assertEqual([i["n"] for i in outcome.items], list(range(500)))
            self.assertEqual((outcome.kind, outcome.payload), ("response", None))
            self.assertEqual([i["n"] async for i in host.stream("test.stream", "count", {"to": 3})], [0, 1, 2])

        self.session(test)

    def test_credit_is_kept(self) -> None:
        async def test(host: Host) -> None:
            call = host.start("test.stream", "count", {"to": 10}, response_stream=True, credit_items=2, credit_bytes=1 << 20, replenish=False)
            await call.wait_for_items(2)
            await host.health()
            await asyncio.sleep(0.05)
            self.assertEqual(len(call.items), 2)
            call.credit_for_items.grant(3, 0)
            call.grant(3, 0)
            await call.wait_for_items(5)
            await host.health()
            self.assertEqual(len(call.items), 5)
            call.cancel()
            self.assertEqual((await call.outcome()).kind, "cancelled")
            self.assertEqual(self.bench.seen, ["cancelled", "cleanup"])

        self.session(test)

    def test_bytes_are_counted(self) -> None:
        async def test(host: Host) -> None:
            call = host.start("test.stream", "count", {"to": 3, "size": 1000}, response_stream=True, credit_items=9, credit_bytes=2000, replenish=False)
            await call.wait_for_items(1)
            await host.health()
            self.assertEqual(len(call.items), 1)
            call.credit_for_items.grant(0, 10_000)
            call.grant(0, 10_000)
            self.assertEqual((await call.outcome()).kind, "response")
            large = await host.call("test.stream", "count", {"to": 1, "size": 5000}, response_stream=True, credit_bytes=1000)
            self.assertEqual(large.code, "resource_exhausted")
            none = host.start("test.stream", "count", {"to": 1}, response_stream=True, credit_items=0, credit_bytes=0, replenish=False)
            await host.health()
            none.credit_for_items.grant(1, 1000)
            none.grant(1, 1000)
            self.assertEqual((await none.outcome()).kind, "response")

        self.session(test)

    def test_an_item_that_the_schema_forbids(self) -> None:
        async def test(host: Host) -> None:
            outcome = await host.call("test.stream", "count", {"to": 5, "bad": 2}, response_stream=True)
            self.assertEqual((outcome.code, len(outcome.items)), ("schema.unknown_member", 2))
            assert outcome.error is not None
            self.assertEqual(outcome.error["blameDomain"], "plugin")

        self.session(test)

    def test_request_stream(self) -> None:
        async def test(host: Host) -> None:
            call = host.start("test.stream", "sum", None, request_stream=True)
            for n in range(1000):
                await call.send_item({"n": n})
            call.end_items()
            self.assertEqual((await call.outcome()).payload, {"sum": 499_500})

        self.session(test)

    def test_relay(self) -> None:
        async def test(host: Host) -> None:
            call = host.start("test.stream", "relay", None, request_stream=True, response_stream=True)
            for n in range(200):
                await call.send_item({"n": n})
                await call.wait_for_items(n + 1)
            call.end_items()
            outcome = await call.outcome()
            self.assertEqual((outcome.kind, len(outcome.items)), ("response", 200))

        self.session(test)

    def test_a_host_that_breaks_the_rules_of_streams(self) -> None:
        async def test(host: Host) -> None:
            def item(call: Any, index: int, payload: Any = None) -> None:
                host.send("streamItem", {"requestId": call.request_id, "operationId": call.operation_id, "index": index, "payload": payload or {"n": 1}})

            def end(call: Any, items: int, size: int) -> None:
                host.send("streamEnd", {"requestId": call.request_id, "operationId": call.operation_id, "itemCount": items, "byteCount": size})

            def flood(call: Any) -> None:
                for n in range(100_000):
                    item(call, n)
                    if n > 70 and n % 50 == 0:
                        break

            for breaks, code in (
                (lambda c: item(c, 1), "invalid_argument"),
                (lambda c: item(c, 0, {"n": "x"}), "schema.mismatch"),
                (lambda c: item(c, 0, {"n": 1, "x": 1}), "schema.unknown_member"),
                (lambda c: end(c, 1, 0), "invalid_argument"),
                (lambda c: (end(c, 0, 0), item(c, 0)), None),
                (lambda c: host.send("flow", {"requestId": c.request_id, "creditItems": 1, "creditBytes": 1}), "invalid_argument"),
                (flood, "flow_control_violation"),
            ):
                with self.subTest(code):
                    call = host.start("test.stream", "sum", None, request_stream=True)
                    breaks(call)
                    outcome = await call.outcome()
                    if code is not None:
                        self.assertEqual(outcome.code, code)
            self.assertEqual((await host.call("test.basic", "echo", {"text": ""})).kind, "response")

        self.session(test)


class ProgressTest(SessionCase):
    def test_at_most_twenty_a_second_and_the_newest_wins(self) -> None:
        async def script(op: Operation) -> Any:
            for n in range(1000):
                op.progress(ProgressUpdate(f"step {n}", n / 10, n, 1000))
                await asyncio.sleep(0.0002)
            await asyncio.sleep(0.12)

        start = time.monotonic()
        outcome = self.do(script)
        limit = (time.monotonic() - start) * 20 + 2
        self.assertGreater(len(outcome.progress), 1)
        self.assertLess(len(outcome.progress), limit)
        self.assertEqual(outcome.progress[-1]["current"], 999)

    def test_the_last_one_is_told_before_the_end(self) -> None:
        async def script(op: Operation) -> Any:
            for n in range(10):
                op.progress(ProgressUpdate(f"step {n} of {op.secret('/token')}"))

        outcome = self.do(script, secrets={"/token": MARKER})
        self.assertEqual([u["message"] for u in outcome.progress], ["step 0 of [redacted]", "step 9 of [redacted]"])

    def test_none_without_the_feature(self) -> None:
        async def script(op: Operation) -> Any:
            op.progress(ProgressUpdate("x"))

        self.bench.script = script

        async def test(host: Host) -> None:
            self.assertEqual((await host.call("test.basic", "do", {})).progress, ())

        self.session(test, supports=["flow.credit.v1"])

    def test_wrong_updates(self) -> None:
        async def script(op: Operation) -> Any:
            for update in (ProgressUpdate("x", 101), ProgressUpdate("x", current=-1), ProgressUpdate("x", total=1.5)):  # type: ignore[arg-type]
                with self.assertRaises(ValueError):
                    op.progress(update)
            with self.assertRaises(ValueError):
                op.effect("maybe")

        self.assertEqual(self.do(script).kind, "response")


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
