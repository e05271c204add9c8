"""What a handler of the call protocol answers with instead of a result."""

from __future__ import annotations

from .call_words import APPLICATION, BAD_PARAMS, NOT_GRANTED
from .wire import strictjson


class CallError(Exception):
    """An error that a handler answers with: of the plugin's own, unless code says otherwise."""

    def __init__(self, message: str, code: int = APPLICATION) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def bad_input(message: str) -> CallError:
    """The error for an input that an action cannot take."""
    return CallError(message, BAD_PARAMS)


def unknown_action(action: str) -> CallError:
    """The error for an action that the plugin does not offer."""
    return bad_input(f"unknown action {strictjson.quote(action)}")


def not_granted(scope: str) -> CallError:
    """The error for work that needs a scope which was withheld."""
    return CallError(f"the scope {scope} is not granted", NOT_GRANTED)


class CallManifestError(ValueError):
    """A manifest of the call protocol that breaks a rule."""
