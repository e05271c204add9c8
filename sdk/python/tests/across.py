"""Holds two programs to one store of receipts: what the first wrote, the second tells again, and runs nothing.

    python3 -m tests.across PACKAGE STATE WRITER... -- READER...

Both are conformance plugins (docs/conformance.md) of the package PACKAGE. Prints "ok".
"""

from __future__ import annotations

import asyncio
import os
import sys
import unittest
from pathlib import Path
from typing import Any

from switchyard_plugin.testing import Host, Outcome

from .support import environment

KEY = "schlüssel 😀 \x7f"
LINES = {"told again": "é😀", "failed": "failed", "held": "held", "died": "died"}


class Across(unittest.TestCase):
    package = state = ""
    writer: list[str] = []
    reader: list[str] = []

    def host(self, command: list[str]) -> Host:
        return Host.of_command(command, directory=self.package, state=self.state, environment=environment(self.state), timeout=60)

    def effects(self) -> list[str]:
        return (Path(self.state) / "effects.log").read_text(encoding="utf-8").splitlines()

    def same(self, first: Outcome, again: Outcome) -> None:
        """Two answers that tell one end."""
        self.assertIsNotNone(first.receipt)
        self.assertEqual(again.receipt, first.receipt)
        self.assertEqual((again.kind, again.payload, again.code), (first.kind, first.payload, first.code))

    def test_across(self) -> None:
        asyncio.run(asyncio.wait_for(self.across(), 120))

    async def across(self) -> None:
        def append(host: Host, line: str, **more: Any) -> Any:
            return host.start("conformance.effects", "append", {"line": line, **more}, idempotency_key=KEY + line)

        def stream(host: Host) -> Any:
            return host.call("conformance.effects", "count-once", {"to": 3, "size": 2}, response_stream=True, idempotency_key=KEY)

        async with self.host(self.writer) as writer, self.host(self.reader) as reader:
            for host in (writer, reader):
                await host.open(settings={"greeting": "hello"})
            # A result: the same payload, receipt and effect.
            first = await append(writer, LINES["told again"]).outcome()
            self.assertEqual((first.kind, first.payload["count"]), ("response", 1))
            self.same(first, await append(reader, LINES["told again"]).outcome())
            other = await append(reader, LINES["told again"], effect="partial").outcome()
            self.assertEqual((other.code, other.receipt), ("already_exists", first.receipt))
            # An error that is not to be repeated.
            failing = {"then": "fail", "code": "not_found", "retryable": False}
            self.same(await append(writer, LINES["failed"], **failing).outcome(), await append(reader, LINES["failed"], **failing).outcome())
            # A stream: its end is told, not its items.
            streamed, again = await stream(writer), await stream(reader)
            self.assertEqual((len(streamed.items), len(again.items), streamed.receipt.item_count), (3, 0, 3))
            self.same(streamed, again)
            # One that runs elsewhere.
            held = append(writer, LINES["held"], then="hold")
            await held.wait_for_progress()
            refused = await append(reader, LINES["held"], then="hold").outcome()
            self.assertEqual((refused.code, refused.error["existingOperationId"]), ("conflict", held.operation_id))
            held.cancel()
            ended = await held.outcome()
            self.assertEqual((ended.kind, ended.receipt.effect_state), ("cancelled", "committed"))
            refused = await append(reader, LINES["held"], then="hold").outcome()
            self.assertEqual((refused.code, refused.receipt), ("failed_precondition", ended.receipt))
            # By its id, from the other one.
            for receipt in (first.receipt, streamed.receipt):
                mine = await writer.ask("receiptQuery", {"receiptId": receipt.receipt_id}, "receipt")
                self.assertEqual(await reader.ask("receiptQuery", {"receiptId": receipt.receipt_id}, "receipt"), mine)
            # One whose process dies after the effect.
            append(writer, LINES["died"], then="exit")
            assert writer._process is not None
            self.assertEqual(await writer._process.wait(), 7)
            dead = await append(reader, LINES["died"], then="exit").outcome()
            self.assertEqual((dead.code, dead.receipt.execution_state, dead.receipt.effect_state), ("failed_precondition", "abandoned", "unknown"))
        self.assertEqual(self.effects(), [LINES["told again"], LINES["failed"], "count", LINES["held"], LINES["died"]])


def main() -> None:
    Across.package, Across.state, *words = sys.argv[1:]
    os.makedirs(Across.state, mode=0o700, exist_ok=True)
    at = words.index("--")
    Across.writer, Across.reader = words[:at], words[at + 1 :]
    result = unittest.TextTestRunner(stream=sys.stderr).run(unittest.defaultTestLoader.loadTestsFromTestCase(Across))
    if not result.wasSuccessful() or result.testsRun != 1:
        sys.exit(1)
    print("ok")


if __name__ == "__main__":
    main()
