"""Reads what a host of the call protocol sends: one request for each line, strictly."""

from __future__ import annotations

import os
import re
from typing import Any, Callable

from .call_errors import CallError
from .call_models import Project
from .call_words import BAD_PARAMS, MAX_MESSAGE_BYTES
from .wire import strictjson


class Wrong(Exception):
    """What is wrong with the members of a request; the message may be sent."""


TOO_LONG = object()


class Lines:
    """Cuts what arrives into lines in bounded memory; a line that is too long is TOO_LONG."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[Any]:
        out: list[Any] = []
        self._buffer += data
        while True:
            end = self._buffer.find(b"\n")
            if end < 0:
                break
            out.append(TOO_LONG if self._skipping or end > MAX_MESSAGE_BYTES else bytes(self._buffer[:end]))
            self._skipping = False
            del self._buffer[: end + 1]
        if len(self._buffer) > MAX_MESSAGE_BYTES:
            self._skipping = True
            self._buffer.clear()
        return out

    def end(self) -> list[Any]:
        if self._skipping:
            return [TOO_LONG]
        return [bytes(self._buffer)] if self._buffer else []


def read_request(line: Any) -> tuple[str, str, Any, bool]:
    """Reads a line as a request: its id as JSON, method, params. Raises Wrong."""
    if line is TOO_LONG:
        raise Wrong(f"more than {MAX_MESSAGE_BYTES} bytes")
    try:
        members = strictjson.loads(line)
    except strictjson.StrictError as fault:
        raise Wrong(str(fault)) from None
    has_params = isinstance(members, dict) and "params" in members
    wanted = {"jsonrpc": string, "id": integer, "method": filled_text}
    if has_params:
        wanted["params"] = lambda value, at: value
    found = read_object(members, "", wanted)
    if found["jsonrpc"] != "2.0":
        raise Wrong('jsonrpc must be "2.0"')
    # -0 is the one integer that is not written as it was read.
    number = str(found["id"])
    if found["id"] == 0 and re.search(rb'"id"[ \t\r\n]*:[ \t\r\n]*-0', line):
        number = "-0"
    return number, found["method"], found.get("params"), has_params


Check = Callable[[Any, str], Any]


def read_object(value: Any, at: str, wanted: dict[str, Check], optional: str = "") -> dict[str, Any]:
    if type(value) is not dict:
        raise Wrong(f"{at + ' ' if at else ''}must be an object")
    prefix = f"{at}." if at else ""
    found = {}
    for name, item in value.items():
        if name not in wanted:
            raise Wrong(f"{at + ' ' if at else ''}has the unknown member {strictjson.quote(name)}")
        found[name] = wanted[name](item, prefix + name)
    for name in wanted:
        if name not in found and name != optional:
            raise Wrong(f"{prefix}{name} is required")
    return found


def members_of(params: Any, has_params: bool, wanted: dict[str, Check]) -> dict[str, Any]:
    if not has_params:
        raise CallError("params is required", BAD_PARAMS)
    try:
        return read_object(params, "", wanted)
    except Wrong as fault:
        raise CallError(f"params: {fault}", BAD_PARAMS) from None


def string(value: Any, at: str) -> str:
    if type(value) is not str:
        raise Wrong(f"{at} must be a string")
    return value


def filled_text(value: Any, at: str) -> str:
    if not string(value, at).strip():
        raise Wrong(f"{at} must not be blank")
    return str(value)


def integer(value: Any, at: str) -> int:
    if type(value) is not int:
        raise Wrong(f"{at} must be an integer")
    return value


def strings(value: Any, at: str) -> list[str]:
    if type(value) is not list:
        raise Wrong(f"{at} must be an array")
    return [string(item, f"{at}[{i}]") for i, item in enumerate(value)]


def _root(value: Any, at: str) -> str:
    if not os.path.isabs(filled_text(value, at)):
        raise Wrong(f"{at} must be an absolute path")
    return str(value)


def read_project(value: Any, at: str) -> Project:
    found = read_object(value, at, {"id": filled_text, "displayName": string, "root": _root}, optional="root")
    return Project(found["id"], found["displayName"], found.get("root"))
