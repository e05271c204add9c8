"""Starts a plugin: picks the protocol that the host speaks and ends the process in order.

A host starts the entry point {module, callable, pythonVersion} of a package so, in the package's directory:

    python3 -I -B -c "import sys; sys.path.insert(0, '.'); from switchyard_plugin.launch import main; main()" MODULE CALLABLE
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from .report import log


def run(self) -> int:
        """Serves the host and returns the exit status."""
        ...


def run(*plugins: Any) -> NoReturn:
    """Serves the host with the plugin whose protocol SWITCHYARD_PLUGIN_PROTOCOL names, and ends the process.

    A plugin is a SessionPlugin or a CallPlugin, or a function that makes one, so that
    only the one that is needed is made. Functions are told apart by the attribute
    protocol, or by there being one plugin only.
    """
    end(_run(plugins))


def _run(plugins: tuple[Any, ...]) -> int:
    wanted = os.environ.get("SWITCHYARD_PLUGIN_PROTOCOL", "")
    try:
        for plugin in plugins:
            if len(plugins) > 1 and _protocol(plugin) != wanted:
                continue
            made: Any = plugin() if callable(plugin) else plugin
            if wanted and made.PROTOCOL != wanted:
                break
            return int(made.run())
    except ValueError as fault:
        log(str(fault))
        return 1
    log(f"this plugin does not speak the protocol that SWITCHYARD_PLUGIN_PROTOCOL names: {wanted[:64]!r}")
    return 1


def _protocol(plugin: Any) -> Any:
    return getattr(plugin, "PROTOCOL", None) or getattr(plugin, "protocol", None)


def end(status: int) -> NoReturn:
    """Ends the process now: what is registered with atexit runs, threads that are still busy are not waited for."""
    import atexit

    try:
        atexit._run_exitfuncs()
        sys.stderr.flush()
    finally:
        os._exit(status)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Runs MODULE CALLABLE [PYTHON-VERSION]: the callable takes nothing and returns a plugin, as create_plugin does."""
    words = sys.argv[1:] if arguments is None else arguments
    if len(words) not in (2, 3):
        log("usage: python3 -m switchyard_plugin MODULE CALLABLE [PYTHON-VERSION]")
        end(2)
    if len(words) == 3:
        try:
            needed = tuple(int(part) for part in words[2].split("."))
        except ValueError:
            log(f"not a version of Python: {words[2][:32]!r}")
            end(2)
        if sys.version_info[: len(needed)] < needed:
            log(f"the plugin needs Python {words[2]}, this is {sys.version_info[0]}.{sys.version_info[1]}")
            end(1)
    import importlib

    try:
        made: Any = importlib.import_module(words[0])
        for part in words[1].split("."):
            made = getattr(made, part)
    except (ImportError, AttributeError) as fault:
        log(f"the entry point {words[0]}:{words[1]} cannot be loaded: {fault}")
        end(1)
    run(made)
