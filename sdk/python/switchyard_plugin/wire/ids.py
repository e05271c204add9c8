"""Identifiers and times as the session protocol writes them: UUIDs (RFC 9562) and RFC 3339 timestamps."""

from __future__ import annotations

import os
import re
import time
from datetime import datetime, timedelta, timezone

_uuid = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_timestamp = re.compile(r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\.([0-9]{1,6}))?Z")
_last = 0


def is_uuid(text: str) -> bool:
    """Reports whether text is a UUID of any version, in either case."""
    return _uuid.fullmatch(text) is not None


def uuid7() -> str:
    """Makes a UUID of version 7. Those of one process rise, even when the clock does not."""
    global _last
    # 48 bits of milliseconds and 12 bits that count within one, so that they sort in the order of their making.
    now = time.time_ns() // 1_000_000 << 12
    _last = max(now, _last + 1)
    stamp, count = _last >> 12, _last & 0xFFF
    rest = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF | 0x8000_0000_0000_0000
    return f"{stamp >> 16:08x}-{stamp & 0xFFFF:04x}-7{count:03x}-{rest >> 48:04x}-{rest & 0xFFFF_FFFF_FFFF:012x}"


def utc_now() -> datetime:
    """The time now, in UTC."""
    return datetime.now(timezone.utc)


def format_timestamp(at: datetime) -> str:
    """Writes a time as RFC 3339 in UTC, with microseconds if it has any and without needless zeros.

    That is the one spelling of every SDK: a receipt that one has read and another wrote
    stays the same to the byte. Raises ValueError for a time without a zone: it could mean any of them.
    """
    if at.tzinfo is None:
        raise ValueError("a time without a zone")
    at = at.astimezone(timezone.utc)
    text = at.replace(tzinfo=None).isoformat()
    return (text.rstrip("0") if at.microsecond else text) + "Z"


def parse_timestamp(text: str) -> datetime:
    """Reads an RFC 3339 time in UTC: upper-case T and Z, a date of the calendar, no leap second, at most microseconds.

    Raises ValueError.
    """
    match = _timestamp.fullmatch(text)
    if match is None:
        raise ValueError("must be an RFC 3339 time in UTC, such as 2026-01-31T12:00:00Z")
    year, month, day, hour, minute, second, fraction = match.groups()
    try:
        return datetime(
            int(year), int(month), int(day), int(hour), int(minute), int(second),
            int((fraction or "0").ljust(6, "0")), timezone.utc,
        )  # fmt: skip
    except ValueError:
        raise ValueError("must be a time of the calendar, without leap seconds") from None


_second = 0
_second_text = ""


def timestamp_now() -> str:
    """The time now as RFC 3339 with microseconds."""
    global _second, _second_text
    seconds, nanos = divmod(time.time_ns(), 1_000_000_000)
    if seconds != _second:
        _second = seconds
        _second_text = (datetime(1970, 1, 1) + timedelta(seconds=seconds)).isoformat()
    return f"{_second_text}.{nanos // 1000:06d}Z"
