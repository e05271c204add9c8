"""Finds a text in the files below a directory, and replaces it."""

from __future__ import annotations

import asyncio
import os
import tempfile
from typing import Any, AsyncIterator, Iterator

from switchyard_plugin import Operation, PluginError, ProgressUpdate, SessionPlugin, run

SKIPPED = frozenset([".git", ".hg", ".svn", "node_modules", "__pycache__"])


def files(root: str) -> Iterator[str]:
    """The regular files below root, sorted, without following links."""
    for directory, names, found in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED)
        for name in sorted(found):
            path = os.path.join(directory, name)
            if os.path.isfile(path) and not os.path.islink(path):
                yield path


def read(path: str, limit: int) -> str | None:
    """A text file's content; None for what is too large or no UTF-8."""
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError:
        return None
    if len(data) > limit:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def write(path: str, text: str) -> None:
    """Replaces a file in one step: whoever reads it sees the old or the new content."""
    mode = os.stat(path).st_mode & 0o7777
    fd, beside = tempfile.mkstemp(dir=os.path.dirname(path))
    try:
        with open(fd, "wb") as file:
            file.write(text.encode())
            file.flush()
            os.fsync(fd)
        os.chmod(beside, mode)
        os.replace(beside, path)
    except BaseException:
        os.unlink(beside)
        raise


def directory(op: Operation, permission: str) -> str:
    """The directory of the request, if its permission is granted."""
    op.grant(permission)
    root = str(op.payload["root"])
    if not os.path.isabs(root) or not os.path.isdir(root):
        raise PluginError("invalid_argument", "root must be the absolute path of a directory")
    return root


def limit(op: Operation) -> int:
    return int(op.settings.get("maxFileBytes", 1 << 20))


async def find(op: Operation) -> AsyncIterator[dict[str, Any]]:
    """Each line that has the text, as an item. The host's credit decides how fast."""
    root, wanted = directory(op, "read"), op.payload["text"]
    looked = 0
    for path in files(root):
        # Reading is done beside the event loop, so that cancellation and heartbeats go on meanwhile.
        text = await asyncio.to_thread(read, path, limit(op))
        looked += 1
        shown = os.path.relpath(path, root).encode("utf-8", "replace").decode()
        op.progress(ProgressUpdate(f"{looked} files", current=looked))
        for number, line in enumerate((text or "").splitlines(), start=1):
            if wanted in line:
                yield {"file": shown, "line": number, "text": line.strip()[:500]}


async def replace(op: Operation) -> dict[str, int]:
    """Replaces the text in all files, each in one step. What it changed is in the receipt."""
    root, old, new = directory(op, "write"), op.payload["text"], op.payload["with"]
    changed = occurrences = 0
    try:
        for path in files(root):
            text = await asyncio.to_thread(read, path, limit(op))
            if text is None or old not in text:
                continue
            # From here until the last file some are changed and some are not.
            op.effect("partial")
            await asyncio.to_thread(write, path, text.replace(old, new))
            changed, occurrences = changed + 1, occurrences + text.count(old)
            op.progress(ProgressUpdate(f"{changed} files changed", current=changed))
    except OSError as fault:
        raise PluginError("failed_precondition", f"a file cannot be written: {fault.strerror}") from None
    op.effect("committed" if changed else "none")
    return {"files": changed, "occurrences": occurrences}


def create_plugin() -> SessionPlugin:
    plugin = SessionPlugin()
    plugin.handle("text.search", "find", find)
    plugin.handle("text.search", "replace", replace)
    return plugin


if __name__ == "__main__":
    run(create_plugin)
