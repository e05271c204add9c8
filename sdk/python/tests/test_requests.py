"""Requests: what is refused, what a handler sees, how they end and are cancelled. A host in the same process speaks to the plugin over a pair of sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any, Awaitable, Callable

from switchyard_plugin import Grant, Limits, Operation, PluginError, format_time
from switchyard_plugin.testing import Host

from .session_case import MARKER, SessionCase
from .support import fails, hold


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
            return [op.grant("files").scope, [g.permission_id for g in op.grants], op.settings["greeting"], op.secrets, op.secret("/token"), op.limits.max_in_flight, format_time(op.context.deadline_utc)]

        self.bench.script = script
        deadline = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc)

        async def test(host: Host) -> Any:
            return await host.call("test.basic", "do", {"a": 1}, attempt=3, deadline=deadline, secrets={"/token": "s"}, grant_id="g")

        outcome = self.session(test, settings={}, grants=[Grant("g", "files", "filesystem.read")])
        self.assertEqual(outcome.payload, ["filesystem.read", ["files"], "hello", ["/token"], "s", 16, "9999-12-31T23:59:59Z"])
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


if __name__ == "__main__":
    unittest.main()
