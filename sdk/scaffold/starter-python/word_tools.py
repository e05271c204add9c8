"""Counts the words of a text, and tells them one by one."""

from __future__ import annotations

import asyncio
from typing import Any, AsyncIterator

from switchyard_plugin import Operation, PluginError, ProgressUpdate, SessionPlugin, SettingsError, SettingsProblem


def words(text: str, settings: Any) -> list[str]:
    """The words of a text, as the settings want them."""
    return text.lower().split() if settings.get("lowercase") else text.split()


async def count(op: Operation) -> dict[str, int]:
    """One request, one answer. The payload has passed schemas/text.json."""
    found = words(op.payload["text"], op.settings)
    return {"words": len(found), "different": len(set(found))}


async def tell(op: Operation) -> AsyncIterator[dict[str, Any]]:
    """A response stream: each yield sends one item, and waits while the host has no room for more."""
    found = words(op.payload["text"], op.settings)
    if not found:
        raise PluginError("failed_precondition", "the text has no words")
    for number, word in enumerate(found, start=1):
        op.progress(ProgressUpdate("telling", current=number, total=len(found)))
        yield {"number": number, "word": word}
        await asyncio.sleep(0)


async def check_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """What schemas/settings.json cannot say. Returns the settings as the plugin uses them."""
    if settings.get("greeting", "").strip() == "forbidden":
        raise SettingsError(SettingsProblem("/greeting", "this greeting is not allowed"))
    return {"lowercase": False, **settings}


def create_plugin() -> SessionPlugin:
    """The entry point that plugin.json names."""
    plugin = SessionPlugin()
    plugin.settings(check_settings)
    plugin.handle("word.tools", "count", count)
    plugin.handle("word.tools", "tell", tell)
    return plugin


if __name__ == "__main__":
    from switchyard_plugin import run

    run(create_plugin)
