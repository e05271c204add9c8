"""What goes over a session's connection: frames, envelopes and bodies, error codes, features, credits, state tables.

It reads strictly and repairs nothing. It holds no connection and knows no
handler; the rules are those of docs/protocol-session.md.
"""

from __future__ import annotations

MIN_VERSION = (1, 0)
MAX_VERSION = (1, 2)
"""The first and the last version of the session protocol that this package speaks."""

DEFAULT_MAX_FRAME = 8 << 20
"""Bytes of a frame's JSON before negotiation."""
MIN_MAX_FRAME = 1 << 10
"""The least that a side may offer as its limit."""
MAX_MAX_FRAME = 2**31 - 1
"""The most, for a length is not negative."""
MAX_EXTENSIONS = 16 << 10
"""Bytes of the member extensions."""
MAX_MESSAGE = 4096
"""Bytes of a text for people."""
MAX_IDEMPOTENCY_KEY = 256
"""Bytes of an idempotency key."""
PROGRESS_PER_SECOND = 20
"""Progress frames of one request."""
