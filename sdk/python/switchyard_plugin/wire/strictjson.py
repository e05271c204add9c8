"""Reads and writes JSON by the value rules of the two protocols.

The json module of the standard library accepts what other languages read
differently: a name twice, NaN, halves of surrogate pairs, numbers that a double
does not hold. Here one document is read by all rules, or refused with the code of
the rule that it breaks. Nothing is repaired and no encoding is guessed.
"""

from __future__ import annotations

import json
import re
from typing import Any

MAX_DEPTH = 64
"""Objects and arrays inside each other."""
MAX_STRING = 1 << 20
"""Bytes of one string or name, unescaped, as UTF-8."""
MAX_MEMBERS = 100_000
"""Members of all objects of a document together."""
MAX_NUMBER = 2**53 - 1
"""The largest magnitude of a number."""

SYNTAX = "json.syntax"
DUPLICATE_NAME = "json.duplicate_name"
INVALID_UNICODE = "json.invalid_unicode"
LIMIT = "json.limit"
NUMBER = "json.number"


class StrictError(ValueError):
    """A document that must be refused. The message quotes nothing of it but names."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


NONCHARACTERS = "\ufdd0-\ufdef" + "".join(f"{chr(p + 0xFFFE)}{chr(p + 0xFFFF)}" for p in range(0, 0x110000, 0x10000))
_noncharacter = re.compile(f"[{NONCHARACTERS}]")
_foreign = re.compile(f"[\ud800-\udfff{NONCHARACTERS}]")
_escape = re.compile(r"\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|.)", re.DOTALL)
_structure = re.compile(r'"(?:[^"\\]+|\\.)*"?|[\[{]|[\]}]', re.DOTALL)


def loads(data: bytes | bytearray | memoryview, *, finite: bool = False) -> Any:
    """Returns the value of a document; integers are int, other numbers float.

    With finite, numbers need only be finite doubles, as RFC 8785 writes them; the
    messages of the protocols never use that. Raises StrictError.
    """
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError:
        raise StrictError(INVALID_UNICODE, "not UTF-8") from None
    if text[:1] == "\ufeff":
        raise StrictError(INVALID_UNICODE, "begins with a byte order mark (BOM)")
    if not text.isascii() and _noncharacter.search(text):
        raise StrictError(INVALID_UNICODE, "a noncharacter")
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(text)
    if "\\u" in text:
        _check_escapes(text)
    try:
        value = (_finite if finite else _decoder).decode(text)
    except json.JSONDecodeError as fault:
        raise StrictError(SYNTAX, f"{_plain(fault.msg)} (character {fault.pos})") from None
    if len(data) > MAX_STRING or text.count(":") > MAX_MEMBERS:
        _check_sizes(value)
    return value


def _plain(message: str) -> str:
    """The json module's own message, in the words of this one; it quotes no value."""
    return message[:1].lower() + message[1:]


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(items)
    if len(members) != len(items):
        seen: set[str] = set()
        for name, _ in items:
            if name in seen:
                raise StrictError(DUPLICATE_NAME, f"the member {quote(name)} occurs twice")
            seen.add(name)
    return members


def _int(literal: str) -> int:
    if len(literal) < 16:
        return int(literal)
    # A literal of more than 17 characters is out of range whatever it spells: JSON has no leading zeros.
    if len(literal) > 17 or abs(int(literal)) > MAX_NUMBER:
        raise StrictError(NUMBER, "a number outside of -(2^53-1) to 2^53-1")
    return int(literal)


def _float(literal: str) -> float:
    value = _finite_float(literal)
    if abs(value) > MAX_NUMBER:
        raise StrictError(NUMBER, "a number outside of -(2^53-1) to 2^53-1")
    return value


def _finite_float(literal: str) -> float:
    value = float(literal)
    if value - value != 0:
        raise StrictError(NUMBER, "a number too large for a double")
    if value == 0 and literal.lower().partition("e")[0].strip("-0."):
        raise StrictError(NUMBER, "a number too close to zero for a double")
    return value


def _finite_int(literal: str) -> int | float:
    if len(literal) < 16:
        return int(literal)
    value = _finite_float(literal)
    return int(value) if abs(value) <= MAX_NUMBER else value


def _constant(name: str) -> Any:
    raise StrictError(SYNTAX, f"{name} is no JSON")


_decoder = json.JSONDecoder(object_pairs_hook=_pairs, parse_int=_int, parse_float=_float, parse_constant=_constant)
_finite = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_int=_finite_int, parse_float=_finite_float, parse_constant=_constant
)


def _check_depth(text: str) -> None:
    depth = 0
    for token in _structure.findall(text):
        if token in "[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise StrictError(LIMIT, f"more than {MAX_DEPTH} levels of objects and arrays")
        elif token in "]}":
            depth -= 1


def _check_escapes(text: str) -> None:
    for high, low in _escape.findall(text):
        if not high:
            continue
        code = int(high, 16)
        if 0xD800 <= code <= 0xDFFF:
            if code >= 0xDC00 or not low:
                raise StrictError(INVALID_UNICODE, "a surrogate without its other half")
            code = 0x10000 + ((code - 0xD800) << 10) + int(low, 16) - 0xDC00
        elif low:
            raise StrictError(INVALID_UNICODE, "a surrogate without its other half")
        if code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF:
            raise StrictError(INVALID_UNICODE, f"the noncharacter U+{code:04X}")


def _check_sizes(value: Any) -> None:
    members = 0
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            if len(item) > MAX_STRING or not item.isascii() and len(item.encode()) > MAX_STRING:
                raise StrictError(LIMIT, f"a string of more than {MAX_STRING} bytes")
        elif isinstance(item, dict):
            members += len(item)
            if members > MAX_MEMBERS:
                raise StrictError(LIMIT, f"more than {MAX_MEMBERS} members")
            stack.extend(item)
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


_encoder = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def dumps(value: Any) -> str:
    """Writes a JSON value without white space.

    Raises TypeError for what is no JSON value, ValueError for NaN, infinities and
    circles. Whether the result keeps the value rules is for check to say.
    """
    try:
        return _encoder.encode(value)
    except RecursionError:
        raise ValueError("too deep for JSON") from None


def check(value: Any) -> tuple[str, Any]:
    """Returns a value of one's own as JSON and as a reader will see it.

    Raises StrictError for what no reader would take: other types than JSON's,
    names that are not strings, and whatever loads refuses.
    """
    try:
        text = dumps(value)
        data = text.encode()
    except UnicodeEncodeError:
        raise StrictError(INVALID_UNICODE, "a surrogate without its other half") from None
    except TypeError as fault:
        raise StrictError(SYNTAX, f"no JSON value: {fault}") from None
    except ValueError as fault:
        raise StrictError(NUMBER, f"no JSON value: {fault}") from None
    read = loads(data)
    _check_names(value)
    return text, read


def _check_names(value: Any) -> None:
    """Refuses names that the json module would turn into strings; the value is known not to be deep."""
    if isinstance(value, dict):
        for name, item in value.items():
            if type(name) is not str:
                raise StrictError(SYNTAX, "no JSON value: a member name that is no string")
            if isinstance(item, (dict, list, tuple)):
                _check_names(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, (dict, list, tuple)):
                _check_names(item)


def clean(text: str) -> str:
    """Returns text as a string that the value rules accept: what they refuse becomes U+FFFD."""
    return _foreign.sub("\ufffd", text)


def cut(text: str, size: int) -> str:
    """Returns the longest beginning of text that has at most size bytes and ends with a whole character."""
    data = text.encode("utf-8", "surrogatepass")
    return text if len(data) <= size else data[:size].decode("utf-8", "ignore")


def quote(name: str) -> str:
    """Renders a foreign name for a message: quoted, printable ASCII, bounded."""
    if len(name) > 64:
        name = name[:64] + "…"
    return json.dumps(name)
