"""Streams in both directions, credit, and progress. A host in the same process speaks to the plugin over a pair of sockets."""

from __future__ import annotations

import asyncio
import time
import unittest
from typing import Any

from switchyard_plugin import Operation, ProgressUpdate
from switchyard_plugin.testing import Host

from .session_case import MARKER, SessionCase


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


if __name__ == "__main__":
    unittest.main()
