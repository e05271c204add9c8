"""A session with a plugin of the tests, in the same process."""

from __future__ import annotations

import contextlib
import io
import unittest
from typing import Any, Awaitable, Callable

from switchyard_plugin import Operation
from switchyard_plugin.testing import Host

from .support import Bench, run

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
