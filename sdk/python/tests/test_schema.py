"""The schema subset. tests/data holds cases that the host's own validator is held to as well (python_test.go)."""

from __future__ import annotations

import json
import time
import unittest
from pathlib import Path
from typing import Any

from switchyard_plugin import SchemaError
from switchyard_plugin.formats import FORMATS
from switchyard_plugin.patterns import PatternError, parse
from switchyard_plugin.schema import MAX_PROBLEMS, WORK_LIMIT, Schema, load
from switchyard_plugin.wire import strictjson

DATA = Path(__file__).parent / "data"
HEAD = '{"$schema":"https://json-schema.org/draft/2020-12/schema","$id":"urn:x:test:1"'


def document(members: str) -> bytes:
    return (HEAD + ("," + members if members else "") + "}").encode()


def compiled(members: str) -> Schema:
    return load(document(members))


def cases(name: str) -> list[dict[str, Any]]:
    found = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    assert len(found) > 50
    return found  # type: ignore[no-any-return]


class SubsetTest(unittest.TestCase):
    def test_documents(self) -> None:
        for case in cases("documents"):
            with self.subTest(case["members"]):
                try:
                    compiled(case["members"])
                    found = ""
                except SchemaError as fault:
                    found = f"{fault.path} {fault.code}"
                if case["problems"] == "":
                    self.assertEqual(found, "")
                else:
                    self.assertIn(found, case["problems"])
                    self.assertNotEqual(found, "")

    def test_values(self) -> None:
        for case in cases("values"):
            with self.subTest(case["members"] + " " + case["value"]):
                problems = compiled(case["members"]).validate(strictjson.loads(case["value"].encode()))
                self.assertEqual(" ".join(f"{p.path} {p.code}" for p in problems), case["problems"])
                if problems:
                    self.assertIn(case["says"], problems[0].message)

    def test_patterns(self) -> None:
        for case in cases("patterns"):
            with self.subTest(case["pattern"]):
                try:
                    parse(case["pattern"]).compile()
                    found = ""
                except PatternError as fault:
                    found = str(fault)
                self.assertIn(case["says"], found)
                self.assertEqual(case["says"] == "", found == "")

    def test_patterns_mean_the_same_as_in_re2(self) -> None:
        for pattern, good, bad in (
            ("^[a-z]+$", ["a", "zz"], ["", "A", "a\n", "é", "a "]),
            (r"^[^\n]*$", ["", "é\r"], ["a\nb", "\n"]),
            (r"^[\x20-\x7e]*$", ["~ !"], ["\x7f", "\t", "é"]),
            (r"^a[$.*+?(){}]b$", ["a$b", "a}b"], ["ab", "a\\b"]),
            (r"^[\[\]\\\^\-\&\~\|]+$", ["[]\\^-&~|"], ["a", ""]),
            ("^(a|b|cd)?x{2,}$", ["xx", "cdxxx"], ["x", "cxx", "xxa"]),
            (r"^\$\^\.\*\+\?\(\)\[\]\{\}\|\\\/\-\n\r\t\f\v$", ["$^.*+?()[]{}|\\/-\n\r\t\f\v"], ["$"]),
        ):
            matcher = parse(pattern).compile()
            for text in good:
                self.assertIsNotNone(matcher.fullmatch(text), (pattern, text))
            for text in bad:
                self.assertIsNone(matcher.fullmatch(text), (pattern, text))

    def test_no_pattern_takes_long(self) -> None:
        began = time.process_time()
        for pattern in ("^(x(a+))+$", "^a{0,30}a{0,30}$", r"^[a-z0-9]+(\-+[a-z0-9]+)*$"):
            parse(pattern).compile().fullmatch("xa" * 50_000 + "!")
            parse(pattern).compile().fullmatch("a" * 100_000 + "!")
        self.assertLess(time.process_time() - began, 5)

    def test_bounds(self) -> None:
        many = compiled('"type":"array","items":{"type":"integer"}').validate(["x"] * 1000)
        self.assertEqual(len(many), MAX_PROBLEMS)
        three = '{"anyOf":[{"$ref":"#/$defs/dN"},{"$ref":"#/$defs/dN"},{"$ref":"#/$defs/dN"}]}'
        layers = [f'"d{i}":{{"type":"array","items":{three.replace("N", str(i + 1))}}}' for i in range(11)]
        definitions = ",".join([*layers, '"d11":{"type":"string"}'])
        value: Any = 1
        for _ in range(11):
            value = [value]
        problems = compiled(f'"$ref":"#/$defs/d0","$defs":{{{definitions}}}').validate(value, 100)
        self.assertEqual([p.code for p in problems], [WORK_LIMIT])

    def test_defaults_are_for_readers(self) -> None:
        schema = compiled('"type":"object","additionalProperties":false,"properties":{"a":{"type":"integer","default":3},"b":true}')
        self.assertEqual(schema.defaults(), {"a": 3})
        self.assertEqual(schema.validate({}), [])

    def test_messages_repeat_no_value(self) -> None:
        schema = compiled('"type":"object","additionalProperties":false,"properties":{"a":{"type":"string","maxLength":2,"format":"uuid"}}')
        for value in ({"a": "hunter2"}, {"a": 4711}):
            self.assertNotRegex(" ".join(map(str, schema.validate(value))), "hunter2|4711")

    def test_formats(self) -> None:
        for name, good, bad in (
            ("date-time", ["2024-02-29T23:59:59.123456789Z", "9999-12-31T23:59:59+23:59"], ["2026-02-29T00:00:00Z", "2016-12-31T23:59:60Z", "2026-01-02T03:04:05+24:00", "0000-01-01T00:00:00Z"]),
            ("uuid", ["0197F9D2-6f31-7cb1-a612-5f5b7f7b8d19"], ["0197f9d26f317cb1a6125f5b7f7b8d19", "0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19\n"]),
            ("int64", ["0", "-9223372036854775808", "9223372036854775807"], ["-0", "01", "+1", "9223372036854775808", "1.0", ""]),
            ("decimal", ["-0", "1.10", "9" * 128], ["9" * 129, ".5", "5.", "1e3", "", "01"]),
            ("base64url", ["", "AA", "AAA", "_-8", "Zg"], ["A", "AB", "AA==", "+/8", "AAB", "Zm9v\n"]),
            ("uri", ["urn:x:y", "https://u:p@example.org:8080/a?b#c", "http://[2001:db8::1]:80/", "a:", "https://example.org:/"],
             ["a", "/a", "urn:a b", "urn:a%2", "https://[1.2.3.4]/", "urn:a#b#c", "https://h:8x/", "https://a@b@c/", "urn:é"]),
        ):  # fmt: skip
            for text in good:
                self.assertTrue(FORMATS[name](text), (name, text))
            for text in bad:
                self.assertFalse(FORMATS[name](text), (name, text))


if __name__ == "__main__":
    unittest.main()
