"""Manifests, packages, sealing."""

from __future__ import annotations

import copy
import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from switchyard_plugin import ManifestError, Package, PackageError
from switchyard_plugin.manifest import digest, parse
from switchyard_plugin.seal import seal

from .support import manifest, uri, write_package


class ManifestTest(unittest.TestCase):
    def setUp(self) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.directory = write_package(Path(self.temporary.name) / "package")
        self.document = json.loads((self.directory / "plugin.json").read_text(encoding="utf-8"))

    def parsed(self, path: str, value: Any) -> Any:
        document = copy.deepcopy(self.document)
        at = document
        *tokens, last = path.strip("/").split("/")
        for token in tokens:
            at = at[int(token)] if isinstance(at, list) else at[token]
        if value is ...:
            del at[last]
        else:
            at[int(last) if isinstance(at, list) else last] = value
        if path != "/provenance/manifestDigest":
            document["provenance"]["manifestDigest"] = digest(document)
        return parse(document)

    def test_valid(self) -> None:
        m = parse(self.document)
        self.assertEqual((m.plugin_id, m.publisher_id, m.package_version), ("org.example.test", "org.example", "1.0.0"))
        spec = m.operation("test.stream", "count")
        assert spec is not None
        self.assertTrue(spec.streams_response and not spec.streams_request and not spec.receipts)
        self.assertIsNone(m.operation("test.stream", "gone"))
        self.assertIsNone(m.operation("gone", "count"))
        for path, value in (
            ("/plugin/pluginId", "com.example.a-b.9"),
            ("/packageVersion", "1.0.0-rc.1+build.05"),
            ("/protocol/minVersion", "1.2"),
            ("/protocol/maxVersion", "1.1"),
            ("/dataDeclarations", ...),
            ("/deprecations", ...),
            ("/settings", ...),
            ("/settings/version", "2.0.0"),
            ("/entryPoints/executable/path", "./bin//a/../tool"),
            ("/network", {"destinations": [{"scheme": "https", "hostPattern": "*.example.org", "port": 443}]}),
            ("/lifecycle", {"requiresHeartbeat": True, "backgroundBehavior": "none"}),
            ("/entryPoints", {"python": {"module": "a.b", "callable": "create_plugin", "pythonVersion": "3.11"}}),
        ):
            with self.subTest(path):
                self.parsed(path, value)
        self.assertEqual(self.parsed("/dataDeclarations", ...).accepted_classes, ("public", "internal"))

    def test_invalid(self) -> None:
        for path, value in (
            ("/manifestSchemaVersion", "urn:example:plugin-manifest:1"), ("/plugin/pluginId", "Example"), ("/plugin/pluginId", "3m.example"),
            ("/plugin/pluginId", "com." + "x" * 61), ("/plugin/secretApiKey", "super-secret"), ("/plugin/displayName", ""), ("/publisher/publisherId", "Org"),
            ("/packageVersion", "1.0"), ("/packageVersion", "01.0.0"), ("/packageVersion", "1.0.0-01"), ("/packageVersion", "1.0.0\n"),
            ("/protocol/minVersion", "1"), ("/protocol/minVersion", "1.3"), ("/protocol/features", ["cancel.v1", "cancel.v1"]),
            ("/entryPoints", {}), ("/entryPoints/executable/path", "/bin/sh"), ("/entryPoints/executable/path", "a/../../b"),
            ("/entryPoints/executable/path", "a\\b"), ("/entryPoints/executable/path", "bin/"), ("/protocol/features", ["cancel.v1"]), ("/entryPoints/executable/arguments", None), ("/capabilities", []), ("/capabilities/0/operations", []), ("/capabilities/0/id", "A"),
            ("/capabilities/0/operations/0/name", "do"), ("/capabilities/0/operations/0/operationVersion", "1.0.0"), ("/capabilities/0/operations/0/idempotent", 1),
            ("/capabilities/0/operations/0/streaming", {"request": False}), ("/capabilities/0/operations/0/requestSchema/digest", "sha256:11"),
            ("/capabilities/1/id", "test.basic"), ("/permissions", None), ("/permissions/0/scope", "everything"), ("/permissions/1/id", "files"),
            ("/runtime", ...), ("/runtime/os", ["beos"]), ("/dataDeclarations/acceptedClasses", ["private"]), ("/deprecations/0/element", "thing:x"),
            ("/deprecations/0/sunsetAfter", "tomorrow"), ("/deprecations/0/behaviorAfterSunset", "warn"), ("/provenance/manifestDigest", "sha256:" + "0" * 64),
            ("/provenance/sbomRef", "not a uri"), ("/extra", 1),
        ):  # fmt: skip
            with self.subTest(f"{path} {value}"), self.assertRaises(ManifestError) as caught:
                self.parsed(path, value)
            self.assertNotIn("super-secret", str(caught.exception))

    def test_digest_leaves_out_itself_only(self) -> None:
        other = copy.deepcopy(self.document)
        other["provenance"]["manifestDigest"] = "x"
        self.assertEqual(digest(other), digest(self.document))
        other["provenance"]["sbomRef"] = "urn:x:y"
        self.assertNotEqual(digest(other), digest(self.document))


class PackageTest(unittest.TestCase):
    def setUp(self) -> None:
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.directory = write_package(Path(self.temporary.name) / "package")

    def refused(self, says: str) -> None:
        with self.assertRaises(PackageError) as caught:
            Package.load(self.directory)
        self.assertIn(says, str(caught.exception))

    def test_load(self) -> None:
        package = Package.load(self.directory)
        self.assertEqual(set(package.schemas), {uri(n) for n in ("any", "text", "item", "settings")})

    def test_refused(self) -> None:
        schemas = self.directory / "schemas"
        text = (schemas / "text.json").read_text(encoding="utf-8")
        (schemas / "text.json").write_text(text.replace('"required": ["text"]', '"required": []'), encoding="utf-8")
        self.refused("digest")
        (schemas / "text.json").write_text(text.replace('"type": "object"', '"$dynamicRef": "#x"'), encoding="utf-8")
        self.refused("not a keyword of the subset")
        (schemas / "text.json").write_text(text[:-1], encoding="utf-8")
        self.refused("json.syntax")
        (schemas / "text.json").unlink()
        self.refused(uri("text"))
        (schemas / "text.json").write_text(text, encoding="utf-8")
        Package.load(self.directory)
        (schemas / "again.json").write_text(text, encoding="utf-8")
        self.refused("another document")
        (schemas / "again.json").unlink()
        (self.directory / "plugin.json").write_text('{"a":1,"a":2}', encoding="utf-8")
        self.refused("json.duplicate_name")
        (self.directory / "plugin.json").unlink()
        self.refused("plugin.json")

    def test_a_schema_that_nobody_refers_to_may_lie_there(self) -> None:
        spare = '{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:example:spare:1"}'
        (self.directory / "schemas" / "spare.json").write_text(spare, encoding="utf-8")
        self.assertIn("urn:example:spare:1", Package.load(self.directory).schemas)

    def test_seal(self) -> None:
        before = (self.directory / "plugin.json").read_bytes()
        self.assertFalse(seal(self.directory))
        self.assertEqual((self.directory / "plugin.json").read_bytes(), before)
        document = json.loads(before)
        document["packageVersion"] = "1.0.1"
        (self.directory / "plugin.json").write_text(json.dumps(document), encoding="utf-8")
        self.refused("manifestDigest")
        self.assertTrue(seal(self.directory))
        self.assertEqual(Package.load(self.directory).manifest.package_version, "1.0.1")
        bad = manifest()
        bad["capabilities"][0]["operations"][0]["requestSchema"]["uri"] = "urn:example:gone:1"
        (self.directory / "plugin.json").write_text(json.dumps(bad), encoding="utf-8")
        with self.assertRaises(PackageError):
            seal(self.directory)


if __name__ == "__main__":
    unittest.main()
