"""Writes the digests of a package into its plugin.json.

    python3 -m switchyard_plugin.seal [DIRECTORY]

A manifest names each schema by its $id and digest, and itself by a digest of its
own. All of them are taken anew from the files; nothing else of the manifest changes but
its white space.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from .manifest import FILE_NAME
from .manifest import digest as manifest_digest
from .package import SCHEMAS_DIR, Package, PackageError
from .wire import jcs, strictjson


def seal(directory: str | os.PathLike[str] = ".") -> bool:
    """Writes the digests, checks the package, and reports whether the manifest has changed. Raises PackageError."""
    directory = os.fspath(directory)
    path = os.path.join(directory, FILE_NAME)
    digests = {}
    folder = os.path.join(directory, SCHEMAS_DIR)
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith(".json"):
            document = _load(os.path.join(folder, name), f"{SCHEMAS_DIR}/{name}")
            if isinstance(document, dict) and isinstance(document.get("$id"), str):
                digests[document["$id"]] = jcs.digest(document)
    manifest = _load(path, FILE_NAME)
    before = json.dumps(manifest)
    _fill(manifest, digests)
    if not isinstance(manifest, dict) or not isinstance(manifest.setdefault("provenance", {}), dict):
        raise PackageError(f"{FILE_NAME}: must be an object with an object provenance")
    manifest["provenance"]["manifestDigest"] = manifest_digest(manifest)
    changed = json.dumps(manifest) != before
    if changed:
        beside = path + ".tmp"
        with open(beside, "w", encoding="utf-8") as file:
            file.write(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n")
        os.replace(beside, path)
    Package.load(directory)
    return changed


def _load(path: str, name: str) -> Any:
    try:
        with open(path, "rb") as file:
            return strictjson.loads(file.read())
    except (OSError, strictjson.StrictError) as fault:
        raise PackageError(f"{name}: {fault}") from None


def _fill(value: Any, digests: dict[str, str]) -> None:
    """Fills in every reference {uri, digest}."""
    if isinstance(value, dict):
        if isinstance(value.get("uri"), str) and set(value) <= {"uri", "digest"} and value["uri"] in digests:
            value["digest"] = digests[value["uri"]]
        for item in value.values():
            _fill(item, digests)
    elif isinstance(value, list):
        for item in value:
            _fill(item, digests)


def main() -> None:
    """The command."""
    directory = sys.argv[1] if len(sys.argv) > 1 else "."
    try:
        changed = seal(directory)
    except PackageError as fault:
        print(fault, file=sys.stderr)
        sys.exit(1)
    print(f"{FILE_NAME}: {'written' if changed else 'unchanged'}")


if __name__ == "__main__":
    main()
