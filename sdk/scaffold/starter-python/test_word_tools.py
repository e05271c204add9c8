"""Holds the plugin to what it promises. python3 -m unittest"""

from __future__ import annotations

import unittest

from switchyard_plugin.testing import Host
from word_tools import create_plugin


class WordToolsTest(unittest.IsolatedAsyncioTestCase):
    async def test_count(self) -> None:
        async with Host.of(create_plugin()) as host:
            await host.open(settings={"lowercase": True})
            outcome = await host.call("word.tools", "count", {"text": "To be or not to be"})
            self.assertEqual(outcome.payload, {"words": 6, "different": 4})

    async def test_tell(self) -> None:
        async with Host.of(create_plugin()) as host:
            await host.open()
            told = [item["word"] async for item in host.stream("word.tools", "tell", {"text": "one two three"})]
            self.assertEqual(told, ["one", "two", "three"])
            empty = await host.call("word.tools", "tell", {"text": " "}, response_stream=True)
            self.assertEqual(empty.code, "failed_precondition")

    async def test_what_the_schema_forbids(self) -> None:
        async with Host.of(create_plugin()) as host:
            await host.open()
            outcome = await host.call("word.tools", "count", {"words": "none"})
            self.assertEqual(outcome.code, "schema.unknown_member")

    async def test_settings(self) -> None:
        async with Host.of(create_plugin()) as host:
            await host.open()
            self.assertTrue((await host.validate_settings({"lowercase": True}))["valid"])
            self.assertFalse((await host.validate_settings({"greeting": "forbidden"}))["valid"])

    async def test_the_session_ends_in_order(self) -> None:
        async with Host.of(create_plugin()) as host:
            await host.open()
            self.assertEqual(await host.drain(), 0)


if __name__ == "__main__":
    unittest.main()
