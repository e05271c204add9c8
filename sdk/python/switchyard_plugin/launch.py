"""Starts a plugin: picks the protocol that the host speaks and ends the process in order.

A host starts the entry point {module, callable, pythonVersion} of a package so, in the package's directory:

    python3 -I -B -c "import sys; sys.path.insert(0, '.'); from switchyard_plugin.launch import main; main()" MODULE CALLABLE
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from .report import log
from .transport import ENV_PROTOCOL


def run(plugin: Any = None, *, session: Any = None, call: Any = None) -> NoReturn:
    """Serves the host with the plugin whose protocol SWITCHYARD_PLUGIN_PROTOCOL names, and ends the process.

    Each is a plugin or a function that makes one, so that only the one that is needed
    is made. A program of one protocol gives plugin; one of both gives session, a
    SessionPlugin, and call, a CallPlugin.
    """
    end(_run(plugin, {"session/1": session, "switchyard.plugin/v1": call}))


def _run(plugin: Any, by_protocol: dict[str, Any]) -> int:
    wanted = os.environ.get(ENV_PROTOCOL, "")
    chosen = by_protocol.get(wanted) or plugin
    try:
        made: Any = chosen() if callable(chosen) else chosen
        if made is not None and wanted in ("", made.PROTOCOL):
            return int(made.run())
    except ValueError as fault:
        log(str(fault))
        return 1
    log(f"this plugin does not speak the protocol that SWITCHYARD_PLUGIN_PROTOCOL names: {wanted[:64]!r}")
    return 1


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
