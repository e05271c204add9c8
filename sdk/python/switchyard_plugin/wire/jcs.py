"""The canonical form of JSON (RFC 8785) and the digests that are taken over it."""

from __future__ import annotations

import json
import re
from hashlib import sha256 as _sha256
from typing import Any

from . import strictjson

# Whatever sorts or prints differently in RFC 8785 than in the json module: doubles, integers that are no
# exact double. A match inside a string costs time, not correctness.
_special = re.compile(r"(?:^|[:,\[])-?(?:[0-9]{16}|[0-9]+[.e])")
_sorted = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True)


def canonical(value: Any) -> bytes:
    """Returns the bytes of RFC 8785 for a JSON value.

    Raises ValueError for NaN, infinities, circles and halves of surrogate pairs
    (UnicodeEncodeError), TypeError for what is no JSON value.
    """
    text = _sorted.encode(value)
    if not text.isascii() or _special.search(text):
        parts: list[str] = []
        _write(value, parts)
        text = "".join(parts)
    return text.encode()


def digest(value: Any) -> str:
    """Returns "sha256:" and the hexadecimal SHA-256 of the canonical form."""
    return "sha256:" + _sha256(canonical(value)).hexdigest()


def digest_bytes(data: bytes) -> str:
    """Returns "sha256:" and the hexadecimal SHA-256 of data."""
    return "sha256:" + _sha256(data).hexdigest()


def _write(value: Any, out: list[str]) -> None:
    if isinstance(value, dict):
        out.append("{")
        comma = False
        # UTF-16 code units, big-endian, compare like their bytes.
        for name in sorted(value, key=lambda n: n.encode("utf-16-be")):
            if comma:
                out.append(",")
            comma = True
            out.append(strictjson.dumps(name))
            out.append(":")
            _write(value[name], out)
        out.append("}")
    elif isinstance(value, (list, tuple)):
        out.append("[")
        comma = False
        for item in value:
            if comma:
                out.append(",")
            comma = True
            _write(item, out)
        out.append("]")
    elif isinstance(value, float) or type(value) is int and abs(value) > strictjson.MAX_NUMBER:
        out.append(number(float(value)))
    else:
        out.append(strictjson.dumps(value))


def number(value: float) -> str:
    """Writes a finite double as ECMAScript does (RFC 8785 section 3.2.2.3)."""
    if value - value != 0:
        raise ValueError("neither NaN nor an infinity is JSON")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        if len(digits) <= point:
            return sign + digits + "0" * (point - len(digits))
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    exp = point - 1
    rest = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{rest}e{'+' if exp > 0 else '-'}{abs(exp)}"
