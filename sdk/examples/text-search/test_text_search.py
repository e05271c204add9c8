"""Holds text-search to what its package says."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "package"), str(HERE.parent.parent / "python")]

from switchyard_plugin import Grant, ReceiptStore, SessionPlugin  # noqa: E402
from switchyard_plugin.testing import Host  # noqa: E402
import text_search  # noqa: E402

READ, WRITE = Grant("g1", "read", "filesystem.read"), Grant("g2", "write", "filesystem.write")


class TextSearchTest(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.state = Path(temporary.name) / "state"
        self.root = Path(temporary.name) / "root"
        for path in (self.state, self.root / "deep" / ".git"):
            path.mkdir(parents=True)
        (self.root / "a.txt").write_text("one needle\nnothing\nneedle and needle\n", encoding="utf-8")
        (self.root / "deep" / "ä.txt").write_text("  a needle\n", encoding="utf-8")
        (self.root / "deep" / ".git" / "b.txt").write_text("needle", encoding="utf-8")
        (self.root / "binary").write_bytes(b"\xff needle")
        os.chmod(self.root / "a.txt", 0o640)

    def host(self) -> Host:
        os.chdir(HERE / "package")
        plugin = SessionPlugin(store=ReceiptStore(str(self.state)))
        plugin.handle("text.search", "find", text_search.find)
        plugin.handle("text.search", "replace", text_search.replace)
        return Host.of(plugin, timeout=60)

    async def call(self, name: str, payload: dict[str, Any], *grants: Grant, **options: Any) -> Any:
        async with self.host() as host:
            await host.open(grants=grants, settings=options.pop("settings", {}))
            return await host.call("text.search", name, {"root": str(self.root), **payload}, **options)

    async def test_find(self) -> None:
        outcome = await self.call("find", {"text": "needle"}, READ, response_stream=True)
        found = [(i["file"], i["line"], i["text"]) for i in outcome.items]
        self.assertEqual(found, [("a.txt", 1, "one needle"), ("a.txt", 3, "needle and needle"), ("deep/ä.txt", 1, "a needle")])

    async def test_find_a_few_only(self) -> None:
        async with self.host() as host:
            await host.open(grants=[READ])
            payload = {"root": str(self.root), "text": "needle"}
            call = host.start("text.search", "find", payload, response_stream=True, credit_items=1, replenish=False)
            await call.wait_for_items(1)
            call.cancel()
            self.assertEqual((await call.outcome()).kind, "cancelled")

    async def test_settings(self) -> None:
        outcome = await self.call("find", {"text": "needle"}, READ, response_stream=True, settings={"maxFileBytes": 20})
        self.assertEqual([i["file"] for i in outcome.items], ["deep/ä.txt"])

    async def test_permissions(self) -> None:
        self.assertEqual((await self.call("find", {"text": "x"}, response_stream=True)).code, "permission_denied")
        self.assertEqual((await self.call("replace", {"text": "x", "with": "y"}, READ)).code, "permission_denied")
        self.assertEqual((await self.call("find", {"text": "x", "root": "relative"}, READ, response_stream=True)).code, "invalid_argument")

    async def test_replace_once(self) -> None:
        for _ in range(2):
            outcome = await self.call("replace", {"text": "needle", "with": "pin needle"}, READ, WRITE, idempotency_key="k")
            self.assertEqual(outcome.payload, {"files": 2, "occurrences": 4})
            self.assertEqual(outcome.receipt.effect_state, "committed")
        self.assertEqual((self.root / "a.txt").read_text(encoding="utf-8"), "one pin needle\nnothing\npin needle and pin needle\n")
        self.assertEqual((self.root / "a.txt").stat().st_mode & 0o777, 0o640)
        self.assertEqual((await self.call("replace", {"text": "gone", "with": ""}, WRITE)).receipt.effect_state, "none")


if __name__ == "__main__":
    unittest.main()
