"""A package: the directory that holds plugin.json and schemas/."""

from __future__ import annotations

import os
from typing import Any

from .manifest import FILE_NAME, MAX_BYTES, ManifestError, SessionManifest, parse
from .schema import Schema, SchemaError
from .wire import jcs, strictjson

SCHEMAS_DIR = "schemas"
MAX_SCHEMA_BYTES = 256 << 10
"""Bytes of one schema document."""
MAX_SCHEMAS = 256
"""Documents in schemas/."""


class PackageError(ValueError):
    """A package that cannot run: its manifest, a schema or a digest is wrong. The message says which file."""


class Package:
    """A session package that was read and whose digests hold."""

    def __init__(self, directory: str, manifest: SessionManifest, schemas: dict[str, Schema]) -> None:
        self.directory = directory
        self.manifest = manifest
        self.schemas = schemas

    @classmethod
    def load(cls, directory: str | os.PathLike[str] = ".") -> "Package":
        """Reads the package in a directory; a plugin's working directory is its package. Raises PackageError."""
        directory = os.fspath(directory)
        document = _read(os.path.join(directory, FILE_NAME), FILE_NAME, MAX_BYTES)
        try:
            manifest = parse(document)
        except ManifestError as fault:
            raise PackageError(str(fault)) from None
        return cls(directory, manifest, _schemas(directory, manifest))


def _read(path: str, name: str, limit: int) -> Any:
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except OSError as fault:
        raise PackageError(f"{name}: {fault.strerror}") from None
    if len(data) > limit:
        raise PackageError(f"{name}: has more than {limit} bytes")
    try:
        return strictjson.loads(data)
    except strictjson.StrictError as fault:
        raise PackageError(f"{name}: {fault.code}: {fault}") from None


def _schemas(directory: str, manifest: SessionManifest) -> dict[str, Schema]:
    folder = os.path.join(directory, SCHEMAS_DIR)
    try:
        names = sorted(n for n in os.listdir(folder) if n.endswith(".json"))
    except FileNotFoundError:
        names = []
    except OSError as fault:
        raise PackageError(f"{SCHEMAS_DIR}: {fault.strerror}") from None
    if len(names) > MAX_SCHEMAS:
        raise PackageError(f"{SCHEMAS_DIR}: has more than {MAX_SCHEMAS} documents")
    schemas: dict[str, Schema] = {}
    for name in names:
        where = f"{SCHEMAS_DIR}/{name}"
        document = _read(os.path.join(folder, name), where, MAX_SCHEMA_BYTES)
        try:
            schema = Schema(document)
        except SchemaError as fault:
            raise PackageError(f"{where}: {fault}") from None
        if schema.id in schemas:
            raise PackageError(f"{where}: another document has the $id {schema.id}")
        wanted = manifest.schema_digests.get(schema.id)
        found = jcs.digest(document) if wanted is not None else None
        if found != wanted:
            raise PackageError(f"{where}: the manifest names the digest {wanted}, the document has {found}")
        schemas[schema.id] = schema
    for uri in manifest.schema_digests:
        if uri not in schemas:
            raise PackageError(f"{SCHEMAS_DIR}: no document has the $id {uri}, which the manifest refers to")
    return schemas
