"""The value rules, each one, and the published corpora where they are."""

from __future__ import annotations

import json
import struct
import unittest

from switchyard_plugin.wire import jcs, strictjson

from .support import SHARED

DOCUMENTS = [
    (b"{}", ""),
    (rb' [1, -0, 0.5, 1e2, 9007199254740991, -9007199254740991, true, false, null, "a\u00e9\ud83d\ude00\/"] ', ""),
    (b'{"a":{"a":1},"b":[{"a":1},{"a":1}]}', ""),
    (b"[" * 64 + b"]" * 64, ""),
    (b'["' + b"[" * 100 + b'"]', ""),
    (b"5e-324", ""),
    (b"9007199254740991.0", ""),
    (b"", strictjson.SYNTAX),
    (b"{} {}", strictjson.SYNTAX),
    (b'{"a":1,}', strictjson.SYNTAX),
    (b"{a:1}", strictjson.SYNTAX),
    (b"01", strictjson.SYNTAX),
    (b"-", strictjson.SYNTAX),
    (b"1.", strictjson.SYNTAX),
    (b"+1", strictjson.SYNTAX),
    (b"NaN", strictjson.SYNTAX),
    (b"-Infinity", strictjson.SYNTAX),
    (b'"\t"', strictjson.SYNTAX),
    (rb'"\x"', strictjson.SYNTAX),
    (b"\x0b1", strictjson.SYNTAX),
    (rb'{"a":1,"\u0061":2}', strictjson.DUPLICATE_NAME),
    (b'[{"x":{"":1,"":2}}]', strictjson.DUPLICATE_NAME),
    (b"\xef\xbb\xbf{}", strictjson.INVALID_UNICODE),
    (b'"\xff"', strictjson.INVALID_UNICODE),
    (b'"\xed\xa0\x80"', strictjson.INVALID_UNICODE),
    (b'"\xc0\x80"', strictjson.INVALID_UNICODE),
    (rb'"\ud800"', strictjson.INVALID_UNICODE),
    (rb'"\udc00"', strictjson.INVALID_UNICODE),
    (rb'"\ud800\ud800"', strictjson.INVALID_UNICODE),
    (rb'"\u0041\udc00"', strictjson.INVALID_UNICODE),
    (rb'"\uffff"', strictjson.INVALID_UNICODE),
    ("\ufdd0".join('""').encode(), strictjson.INVALID_UNICODE),
    (rb'"\ud83f\udfff"', strictjson.INVALID_UNICODE),
    (b"[" * 65 + b"]" * 65, strictjson.LIMIT),
    (b"[" * 100_000, strictjson.LIMIT),
    (b"1e400", strictjson.NUMBER),
    (b"1e-400", strictjson.NUMBER),
    (b"9007199254740992", strictjson.NUMBER),
    (b"-9007199254740992", strictjson.NUMBER),
    (b"9" * 5000, strictjson.NUMBER),
    (b"1e16", strictjson.NUMBER),
]

EXPECTED = {
    "reject:not-json": {strictjson.SYNTAX},
    "reject:const": {strictjson.SYNTAX},
    "reject:not-utf8": {strictjson.INVALID_UNICODE},
    "reject:bom": {strictjson.INVALID_UNICODE},
    "reject:surrogate": {strictjson.INVALID_UNICODE},
    "reject:noncharacter": {strictjson.INVALID_UNICODE},
    "reject:duplicate-key": {strictjson.DUPLICATE_NAME},
    "reject:overflow": {strictjson.NUMBER},
    "reject:underflow": {strictjson.NUMBER},
    "reject:int>2^53-1": {strictjson.NUMBER},
    "limit:depth": {strictjson.LIMIT},
    "accept": {""},
}

# What the corpus leaves to a profile, and the protocols decide: depth, the range of all numbers, and
# which of two faults is told.
ARGUED = {
    "i_structure_500_nested_arrays.json": strictjson.LIMIT,
    "n_string_1_surrogate_then_escape.json": strictjson.INVALID_UNICODE,
    "n_string_1_surrogate_then_escape_u.json": strictjson.INVALID_UNICODE,
    "n_string_1_surrogate_then_escape_u1.json": strictjson.INVALID_UNICODE,
    "n_string_1_surrogate_then_escape_u1x.json": strictjson.INVALID_UNICODE,
    "n_string_incomplete_surrogate.json": strictjson.INVALID_UNICODE,
    "n_string_incomplete_surrogate_escape_invalid.json": strictjson.INVALID_UNICODE,
    "y_number.json": strictjson.NUMBER,
    "y_number_real_capital_e.json": strictjson.NUMBER,
    "y_number_real_exponent.json": strictjson.NUMBER,
    "y_number_real_fraction_exponent.json": strictjson.NUMBER,
    "y_object_extreme_numbers.json": strictjson.NUMBER,
}


def code_of(document: bytes) -> str:
    try:
        strictjson.loads(document)
    except strictjson.StrictError as fault:
        return fault.code
    return ""


class StrictTest(unittest.TestCase):
    def test_documents(self) -> None:
        for document, code in DOCUMENTS:
            with self.subTest(document[:80]):
                self.assertEqual(code_of(document), code)

    def test_sizes(self) -> None:
        def members(n: int) -> bytes:
            return b"[" + b",".join([b'{"a":0}'] * n) + b"]"

        def text(n: int) -> bytes:
            return b'"' + rb"\u0041" * n + b'"'

        self.assertEqual(code_of(members(strictjson.MAX_MEMBERS)), "")
        self.assertEqual(code_of(members(strictjson.MAX_MEMBERS + 1)), strictjson.LIMIT)
        self.assertEqual(code_of(text(strictjson.MAX_STRING)), "")
        self.assertEqual(code_of(text(strictjson.MAX_STRING + 1)), strictjson.LIMIT)
        self.assertEqual(code_of(b'"' + "é".encode() * (strictjson.MAX_STRING // 2 + 1) + b'"'), strictjson.LIMIT)

    def test_every_noncharacter(self) -> None:
        for code in [*range(0xFDD0, 0xFDF0), *(p + n for p in range(0, 0x110000, 0x10000) for n in (0xFFFE, 0xFFFF))]:
            escaped = json.dumps(chr(code)).encode()
            self.assertEqual(code_of(escaped), strictjson.INVALID_UNICODE, hex(code))
            self.assertEqual(code_of(f'"{chr(code)}"'.encode()), strictjson.INVALID_UNICODE, hex(code))

    def test_corpus(self) -> None:
        table = SHARED / "json" / "ijson_expect.tsv"
        if not table.exists():
            self.skipTest("the JSON corpus is not here; its verdicts were not compared")
        compared, argued = 0, set()
        for row in table.read_text(encoding="utf-8").splitlines()[1:]:
            name, _, verdict = row.split("\t")
            paths = [p for d in ("test_parsing", "test_transform") if (p := SHARED / "json" / d / name).exists()]
            if not paths:
                continue
            compared += 1
            code = code_of(paths[0].read_bytes())
            if code not in EXPECTED[verdict]:
                argued.add(name)
                self.assertEqual(code, ARGUED.get(name), f"{name}: {verdict}")
        self.assertGreater(compared, 300)
        self.assertEqual(argued, set(ARGUED), "a difference that is argued for is none any more")

    def test_values_of_ones_own(self) -> None:
        self.assertEqual(strictjson.check({"a": [1, (2, 3)], "é": None}), ('{"a":[1,[2,3]],"é":null}', {"a": [1, [2, 3]], "é": None}))
        for value in ({1: 2}, {"a": {None: 1}}, object(), {"a": {1, 2}}, float("nan"), float("inf"), 2**53, "\ud800", "\uffff", b"x"):
            with self.subTest(repr(value)), self.assertRaises(strictjson.StrictError):
                strictjson.check(value)
        deep: list[object] = []
        for _ in range(5000):
            deep = [deep]
        with self.assertRaises(strictjson.StrictError):
            strictjson.check(deep)

    def test_text(self) -> None:
        self.assertEqual(strictjson.clean("a\ud800b\uffff\U0010ffff!é"), "a\ufffdb\ufffd\ufffd!é")
        self.assertEqual([strictjson.cut("aé😀", n) for n in range(8)], ["", "a", "a", "aé", "aé", "aé", "aé", "aé😀"])


class CanonicalTest(unittest.TestCase):
    def test_corpus(self) -> None:
        folder = SHARED / "jcs"
        if not folder.exists():
            self.skipTest("the JCS corpus is not here; its vectors were not compared")
        names = sorted(p.name for p in (folder / "input").iterdir())
        self.assertGreaterEqual(len(names), 6)
        for name in names:
            value = strictjson.loads((folder / "input" / name).read_bytes(), finite=True)
            self.assertEqual(jcs.canonical(value), (folder / "output" / name).read_bytes().strip(), name)
        vectors = (folder / "es6_1k.txt").read_text().split()
        self.assertEqual(len(vectors), 1000)
        for vector in vectors:
            bits, wanted = vector.split(",")
            self.assertEqual(jcs.number(struct.unpack(">d", bytes.fromhex(bits.rjust(16, "0")))[0]), wanted)

    def test_order_and_numbers(self) -> None:
        # UTF-16 puts a surrogate pair before U+FB33; code points would not.
        self.assertEqual(jcs.canonical({"\ufb33": 1, "\U0001f600": 2, "a": 3}), '{"a":3,"\U0001f600":2,"\ufb33":1}'.encode())
        self.assertEqual(jcs.canonical({"b": [1.0, -0.0, 1e21, 1e-7, 0.1], "a": True}), b'{"a":true,"b":[1,0,1e+21,1e-7,0.1]}')
        self.assertEqual(jcs.canonical({"s": ":1.5,[2e3"}), b'{"s":":1.5,[2e3"}')
        for bad in (float("nan"), {"a": float("inf")}, "\ud800"):
            with self.assertRaises(ValueError):
                jcs.canonical(bad)


if __name__ == "__main__":
    unittest.main()
