"""Receipts: what is deduplicated, what is kept, and what a killed process leaves."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import io
import json
import os
import signal
import sys
import tempfile
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

from switchyard_plugin import Operation, PluginError, ReceiptStore
from switchyard_plugin.receipts import Claim, Record, Refused, request_digest, tuple_name
from switchyard_plugin.testing import Host
from switchyard_plugin.wire.ids import format_timestamp, utc_now, uuid7

from .support import Bench, environment, fails, hold, run
from .test_wire import RECEIPT

CHILD = """
import asyncio, os, sys
sys.path.insert(0, sys.argv[1])
from switchyard_plugin import Operation, ProgressUpdate, SessionPlugin, run

async def forever(op: Operation):
    op.progress(ProgressUpdate("begun"))
    op.effect("committed")
    with open(os.path.join(os.environ["SWITCHYARD_PLUGIN_STATE"], "effects"), "a", encoding="utf-8") as file:
        file.write("x")
    await asyncio.sleep(float(op.payload.get("seconds", 3600)))
    return "done"

def create_plugin():
    plugin = SessionPlugin()
    for capability in plugin.package.manifest.capabilities:
        for spec in capability.operations:
            plugin.handle(spec.capability_id, spec.name, forever)
    return plugin

run(create_plugin)
"""


class StoreTest(unittest.TestCase):
    def setUp(self) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.store = ReceiptStore(self.temporary.name)

    def draft(self, **change: Any) -> dict[str, Any]:
        return {
            **RECEIPT, "receiptId": uuid7(), "operationId": uuid7(), "idempotencyKey": "k", "executionState": "in_progress",
            "effectState": "unknown", "expiresAtUtc": "2999-01-01T00:00:00Z", **change,
        }  # fmt: skip

    def end(self, draft: dict[str, Any], result: str | None = None, error: dict[str, Any] | None = None, **change: Any) -> None:
        claim = self.store.claim(draft)
        assert isinstance(claim, Claim)
        claim.write(Record({**draft, **change}, result, error))
        claim.release()

    def refused(self, draft: dict[str, Any]) -> Refused:
        with self.assertRaises(Refused) as caught:
            self.store.claim(draft)
        return caught.exception

    def test_files(self) -> None:
        draft = self.draft()
        claim = self.store.claim(draft)
        assert isinstance(claim, Claim)
        tuple_ = b'{"capabilityId":"test.basic","idempotencyKey":"k","operationName":"echo","pluginId":"org.example.test"}'
        name = hashlib.sha256(tuple_).hexdigest()
        self.assertEqual(tuple_name("org.example.test", "test.basic", "echo", "k"), name)
        folder = Path(self.temporary.name) / "receipts"
        self.assertEqual(sorted(p.name for p in folder.iterdir()), [f"{name}.json", f"{name}.lock"])
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        self.assertEqual((folder / f"{name}.json").stat().st_mode & 0o777, 0o600)
        claim.write(Record({**draft, "executionState": "completed"}, '{"a":1}'))
        claim.release()
        self.assertEqual(json.loads((folder / f"{name}.json").read_text())["result"], {"a": 1})

    def test_the_table(self) -> None:
        failed = {"code": "unavailable", "message": "m", "retryable": True}
        for state, effect, error, then in (
            ("completed", "committed", None, "replay"),
            ("completed", "none", None, "replay"),
            ("completed", "unknown", None, "failed_precondition"),
            ("completed", "partial", None, "failed_precondition"),
            ("failed", "none", failed, "run"),
            ("failed", "none", {**failed, "retryable": False}, "replay"),
            ("failed", "committed", failed, "replay"),
            ("failed", "rolled_back", failed, "replay"),
            ("failed", "unknown", failed, "failed_precondition"),
            ("cancelled", "none", None, "run"),
            ("cancelled", "committed", None, "failed_precondition"),
            ("abandoned", "unknown", None, "failed_precondition"),
            ("in_progress", "unknown", None, "failed_precondition"),
        ):
            with self.subTest(f"{state} {effect} {error}"):
                key = uuid7()
                draft = self.draft(idempotencyKey=key)
                self.end(draft, "1", error, executionState=state, effectState=effect)
                again = self.draft(idempotencyKey=key)
                if then == "failed_precondition":
                    fault = self.refused(again)
                    self.assertEqual(fault.code, then)
                    assert fault.receipt is not None
                    self.assertEqual(fault.receipt["receiptId"], draft["receiptId"])
                else:
                    found = self.store.claim(again)
                    self.assertEqual("replay" if isinstance(found, Record) else "run", then)
                    if isinstance(found, Claim):
                        found.release()
                other = self.refused(self.draft(idempotencyKey=key, requestDigest="sha256:" + "0" * 64))
                self.assertEqual(other.code, "already_exists")

    def test_running_and_abandoned(self) -> None:
        draft = self.draft()
        claim = self.store.claim(draft)
        assert isinstance(claim, Claim)
        fault = self.refused(self.draft())
        self.assertEqual((fault.code, fault.existing_operation_id), ("conflict", draft["operationId"]))
        query = {"receiptId": draft["receiptId"]}
        self.assertEqual((self.store.find(query) or {})["executionState"], "in_progress")
        claim.release()
        found = self.store.find(query) or {}
        self.assertEqual((found["executionState"], found["effectState"]), ("abandoned", "unknown"))
        self.assertEqual(self.refused(self.draft()).code, "failed_precondition")

    def test_what_has_expired_is_not_there(self) -> None:
        past = format_timestamp(utc_now().replace(year=2020))
        self.end(self.draft(expiresAtUtc=past), executionState="completed", effectState="unknown", expiresAtUtc=past)
        claim = self.store.claim(self.draft())
        assert isinstance(claim, Claim)
        claim.release()

    def test_without_a_key(self) -> None:
        draft = self.draft(idempotencyKey=None)
        self.end(draft, executionState="completed")
        self.assertEqual((self.store.find({"receiptId": draft["receiptId"]}) or {})["executionState"], "completed")
        self.assertIsNone(self.store.find({"receiptId": uuid7()}))

    def test_a_damaged_record_is_no_empty_start(self) -> None:
        draft = self.draft()
        self.end(draft, executionState="completed")
        (record,) = [p for p in (Path(self.temporary.name) / "receipts").iterdir() if p.suffix == ".json"]
        record.write_bytes(record.read_bytes()[:-20])
        with self.assertRaises(OSError):
            self.store.claim(self.draft())

    def test_digest_of_a_request(self) -> None:
        wanted = hashlib.sha256(b'{"capabilityId":"a","operationName":"b","operationVersion":"1.0","payload":{"x":1}}').hexdigest()
        self.assertEqual(request_digest("a", "b", "1.0", {"x": 1.0}), f"sha256:{wanted}")


class SessionReceiptTest(unittest.TestCase):
    def setUp(self) -> None:
        self.bench = Bench()
        self.addCleanup(self.bench.remove)

    def test_one_effect(self) -> None:
        async def test() -> None:
            async with Host.of(self.bench.plugin()) as host:
                await host.open()
                first = await host.call("test.basic", "effect", {"a": 1}, idempotency_key="k")
                again = await host.call("test.basic", "effect", {"a": 1}, idempotency_key="k", attempt=2)
                other = await host.call("test.basic", "effect", {"a": 2}, idempotency_key="k")
                self.assertEqual((first.payload, again.payload, other.code), ({"effects": 1}, {"effects": 1}, "already_exists"))
                self.assertEqual(first.receipt, again.receipt)
                assert first.receipt is not None
                self.assertEqual((first.receipt.execution_state, first.receipt.effect_state, first.receipt.attempt), ("completed", "committed", 1))
                found = await host.ask("receiptQuery", {"receiptId": first.receipt.receipt_id}, "receipt")
                self.assertEqual(found["operationId"], first.receipt.operation_id)
                query = {"pluginId": "org.example.test", "capabilityId": "test.basic", "operationName": "effect", "idempotencyKey": "k"}
                self.assertEqual(await host.ask("receiptQuery", query, "receipt"), found)
                before = len(host.frames)
                host.send("receiptQuery", {"receiptId": uuid7()})
                self.assertEqual((await host.receive("error", before)).body["code"], "not_found")
                await host.call("test.basic", "effect", {})
                await host.call("test.basic", "effect", {})
            async with Host.of(self.bench.plugin()) as host:
                await host.open()
                self.assertEqual((await host.call("test.basic", "effect", {"a": 1}, idempotency_key="k")).payload, {"effects": 1})

        run(test())
        self.assertEqual(self.bench.effects, 3)

    def test_errors_and_streams(self) -> None:
        async def unexpected(op: Operation) -> Any:
            raise RuntimeError

        async def partial(op: Operation) -> Any:
            raise PluginError("unavailable", "half done", effect="partial")

        async def test() -> None:
            async with Host.of(self.bench.plugin()) as host:
                await host.open()
                for script, effect, first, second in (
                    (fails("unavailable"), "none", "unavailable", "unavailable"),
                    (fails("not_found"), "none", "not_found", "not_found"),
                    (unexpected, "unknown", "internal", "failed_precondition"),
                    (partial, "partial", "unavailable", "failed_precondition"),
                ):
                    key = uuid7()
                    self.bench.script = script
                    outcome = await host.call("test.basic", "effect", {}, idempotency_key=key)
                    assert outcome.receipt is not None
                    self.assertEqual((outcome.code, outcome.receipt.effect_state, outcome.receipt.error_code), (first, effect, first))
                    self.assertEqual((await host.call("test.basic", "effect", {}, idempotency_key=key)).code, second)
                self.bench.script = None
                self.bench.effects = 0
                for items in (2, 0):
                    outcome = await host.call("test.stream", "once", {}, response_stream=True, idempotency_key="s")
                    self.assertEqual((outcome.kind, len(outcome.items), outcome.payload), ("response", items, None))
                    assert outcome.receipt is not None
                    self.assertEqual(outcome.receipt.item_count, 2)
                self.assertEqual(self.bench.effects, 1)
                await host.call("test.basic", "effect", {}, idempotency_key="n", retention="none")
                self.assertEqual((await host.call("test.basic", "effect", {}, idempotency_key="n", retention="none")).code, "failed_precondition")

        run(test())

    def test_effects_as_declared(self) -> None:
        """S-90: what was declared last counts; else none, or unknown for a failure that nobody explained."""

        async def done(op: Operation) -> Any:
            return "done"

        async def twice(op: Operation) -> Any:
            op.effect("unknown")
            op.effect("rolled_back")

        async def wrong_result(op: Operation) -> Any:
            return {"a": object()}

        async def declared_then_unexplained(op: Operation) -> Any:
            op.effect("committed")
            raise RuntimeError

        async def error_overrules(op: Operation) -> Any:
            op.effect("committed")
            raise PluginError("unavailable", "undone", effect="rolled_back")

        async def no_effect_at_all(op: Operation) -> Any:
            error = PluginError("unavailable", "x")
            error.effect = "maybe"
            raise error

        async def by_itself(op: Operation) -> Any:
            raise asyncio.CancelledError

        def late(ends: Any) -> Any:
            async def script(op: Operation) -> Any:
                try:
                    await hold(op)
                except asyncio.CancelledError:
                    raise ends from None

            return script

        cases: list[tuple[Any, str, str]] = [
            (done, "completed", "none"),
            (twice, "completed", "rolled_back"),
            (fails("unavailable"), "failed", "none"),
            (fails("state.violation"), "failed", "none"),
            (wrong_result, "failed", "none"),
            (declared_then_unexplained, "failed", "committed"),
            (error_overrules, "failed", "rolled_back"),
            (no_effect_at_all, "failed", "unknown"),
            (by_itself, "failed", "unknown"),
        ]
        deadlines: list[tuple[Any, str, str]] = [
            (late(asyncio.CancelledError()), "failed", "none"),
            (late(RuntimeError()), "failed", "unknown"),
            (late(PluginError("unavailable", "x", effect="partial")), "failed", "partial"),
        ]

        async def test() -> None:
            async with Host.of(self.bench.plugin()) as host:
                await host.open()
                for script, state, effect in cases + deadlines:
                    self.bench.script = script
                    soon = utc_now() + timedelta(seconds=0.2) if (script, state, effect) in deadlines else None
                    receipt = (await host.call("test.basic", "effect", {}, deadline=soon)).receipt
                    assert receipt is not None
                    self.assertEqual((receipt.execution_state, receipt.effect_state), (state, effect), script)

        with contextlib.redirect_stderr(io.StringIO()):
            run(test())
        with self.assertRaises(ValueError):
            PluginError("unavailable", "x", effect="maybe")

    def test_a_conflict(self) -> None:
        self.bench.script = hold

        async def test() -> None:
            async with Host.of(self.bench.plugin()) as host:
                await host.open()
                call = host.start("test.basic", "effect", {}, idempotency_key="k")
                await call.wait_for_progress()
                error = (await host.call("test.basic", "effect", {}, idempotency_key="k")).error
                assert error is not None
                self.assertEqual((error["code"], error["existingOperationId"]), ("conflict", call.operation_id))
                call.cancel()
                outcome = await call.outcome()
                assert outcome.receipt is not None
                self.assertEqual(outcome.receipt.execution_state, "cancelled")

        run(test())

    def test_a_receipt_that_cannot_be_written(self) -> None:
        async def test() -> None:
            (self.bench.state / "receipts").write_text("in the way")
            async with Host.of(self.bench.plugin()) as host:
                await host.open()
                self.assertEqual((await host.call("test.basic", "effect", {}, idempotency_key="k")).code, "internal")

        run(test())
        self.assertEqual(self.bench.effects, 0)


class KilledTest(unittest.TestCase):
    """What another process left, or is doing."""

    def setUp(self) -> None:
        self.bench = Bench()
        self.addCleanup(self.bench.remove)
        self.program = self.bench.directory / "child.py"
        self.program.write_text(CHILD, encoding="utf-8")

    def host(self) -> Host:
        sdk = str(Path(__file__).resolve().parent.parent)
        command = [sys.executable, "-I", str(self.program), sdk]
        return Host.of_command(
            command, directory=str(self.bench.package.directory), state=str(self.bench.state), environment=environment(self.bench.state), timeout=60
        )

    def test_killed_after_the_effect(self) -> None:
        async def test() -> None:
            async with self.host() as host:
                await host.open()
                call = host.start("test.basic", "effect", {}, idempotency_key="k")
                await call.wait_for_progress()
                async with self.host() as other:
                    await other.open()
                    self.assertEqual((await other.call("test.basic", "effect", {}, idempotency_key="k")).code, "conflict")
                    assert host._process is not None
                    os.kill(host._process.pid, signal.SIGKILL)
                    await host._process.wait()
                    outcome = await other.call("test.basic", "effect", {}, idempotency_key="k")
                    self.assertEqual(outcome.code, "failed_precondition")
                    assert outcome.receipt is not None
                    self.assertEqual((outcome.receipt.execution_state, outcome.receipt.effect_state), ("abandoned", "unknown"))
                    query = {"receiptId": outcome.receipt.receipt_id}
                    self.assertEqual((await other.ask("receiptQuery", query, "receipt"))["executionState"], "abandoned")

        asyncio.run(asyncio.wait_for(test(), 120))
        self.assertEqual((self.bench.state / "effects").read_text(), "x")

    def test_a_storm_over_processes(self) -> None:
        async def storm(host: Host) -> set[str]:
            calls = [host.start("test.basic", "effect", {"seconds": 0.2}, idempotency_key="k") for _ in range(40)]
            return {o.code or o.kind for o in [await c.outcome() for c in calls]}

        async def test() -> None:
            async with self.host() as a, self.host() as b, self.host() as c:
                for host in (a, b, c):
                    await host.open()
                ends = set().union(*await asyncio.gather(storm(a), storm(b), storm(c)))
                self.assertLessEqual(ends, {"response", "conflict", "resource_exhausted"})
                self.assertEqual((await c.call("test.basic", "effect", {"seconds": 0.2}, idempotency_key="k")).payload, "done")

        asyncio.run(asyncio.wait_for(test(), 120))
        self.assertEqual((self.bench.state / "effects").read_text(), "x")


if __name__ == "__main__":
    unittest.main()
