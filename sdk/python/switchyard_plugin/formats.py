"""The formats that package schemas can ask of a string. Each function answers yes or no and makes no value."""

from __future__ import annotations

import re
from datetime import date
from typing import Callable

MAX_DECIMAL = 128
"""Characters of a decimal."""

_date_time = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
)
_uuid = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_int64 = re.compile(r"0|-?[1-9][0-9]{0,18}")
_decimal = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_base64url = re.compile(r"(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{3}|[A-Za-z0-9_-]{2})?")
_uri = re.compile(
    r"[A-Za-z][A-Za-z0-9+.-]*:(?://(?P<authority>[^/?#]*))?(?P<rest>(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)"
    r"(?:#(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?"
)
_authority = re.compile(
    r"(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*@)?"
    r"(?:\[(?P<ip>[0-9A-Fa-f:.]+)\]|(?:[A-Za-z0-9._~!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*)(?::[0-9]*)?"
)


def date_time(text: str) -> bool:
    """An RFC 3339 time with upper-case T and Z or a numeric offset, a date of the calendar, no leap second, at most 9 digits of a second."""
    match = _date_time.fullmatch(text)
    if match is None:
        return False
    try:
        date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return False
    return True


def uuid(text: str) -> bool:
    """A UUID of any version, in either case."""
    return _uuid.fullmatch(text) is not None


def int64(text: str) -> bool:
    """An integer from -2^63 to 2^63-1 in its only spelling."""
    return _int64.fullmatch(text) is not None and -(2**63) <= int(text) < 2**63


def decimal(text: str) -> bool:
    """A decimal number without exponent, of at most MAX_DECIMAL characters."""
    return len(text) <= MAX_DECIMAL and _decimal.fullmatch(text) is not None


_digits64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def base64url(text: str) -> bool:
    """Bytes as base64url without padding, with the unused bits zero."""
    if _base64url.fullmatch(text) is None:
        return False
    unused = {2: 15, 3: 3}.get(len(text) % 4, 0)
    return not unused or not _digits64.index(text[-1]) & unused


def uri(text: str) -> bool:
    """A URI of RFC 3986 with a scheme; IP literals are IPv6 addresses without a zone."""
    match = _uri.fullmatch(text)
    if match is None:
        return False
    if match["authority"] is None:
        return not match["rest"].startswith("//")
    authority = _authority.fullmatch(match["authority"])
    if authority is None:
        return False
    if authority["ip"] is not None:
        import socket

        try:
            socket.inet_pton(socket.AF_INET6, authority["ip"])
        except OSError:
            return False
    return True


FORMATS: dict[str, Callable[[str], bool]] = {
    "date-time": date_time,
    "uuid": uuid,
    "uri": uri,
    "int64": int64,
    "decimal": decimal,
    "base64url": base64url,
}
"""Every format of the subset. A schema that asks for another is refused."""
