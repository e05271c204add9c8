"""What leaves the process as text: error bodies, and lines for people on standard error.

Nothing private gets out by either: an exception of plugin code is told by its type
alone unless the host asked for more, and never with a secret.
"""

from __future__ import annotations

import sys
from typing import Any, Iterable, Optional

from .wire import MAX_MESSAGE, codes, strictjson


def error_body(
    code: str,
    message: str,
    *,
    blame: str,
    severity: str = "error",
    retryable: Optional[bool] = None,
    request_id: Optional[str] = None,
    operation_id: Optional[str] = None,
) -> dict[str, Any]:
    """Returns the body of an error frame."""
    return {
        "code": code,
        "message": bounded(message),
        "retryable": codes.retryable(code) if retryable is None else retryable,
        "blameDomain": blame,
        "severity": severity,
        "requestId": request_id,
        "operationId": operation_id,
    }


def bounded(text: str) -> str:
    """Returns a text for people as a message may hold it."""
    return strictjson.clean(text)[:MAX_MESSAGE]


def log(text: str) -> None:
    """Writes a line for people to standard error."""
    print(strictjson.clean(text).replace("\n", " ")[:2000], file=sys.stderr, flush=True)


def log_exception(doing: str, fault: BaseException, *, debug: bool, hidden: Iterable[str] = ()) -> None:
    """Logs an exception of plugin code: its type, and only with debug its text and trace, without the hidden values."""
    if not debug:
        log(f"{doing}: {type(fault).__name__} (its text is not logged; the host can ask for explicit-debug)")
        return
    import traceback

    text = hide("".join(traceback.format_exception(fault)), hidden)
    print(f"{doing}:\n{text}", file=sys.stderr, flush=True)


def hide(text: str, values: Iterable[str]) -> str:
    """Returns text with every one of the values replaced."""
    for value in sorted(values, key=len, reverse=True):
        if value:
            text = text.replace(value, "[redacted]")
    return text
