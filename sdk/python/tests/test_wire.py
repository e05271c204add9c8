"""Frames, envelopes, bodies, codes, features, states, credit, identifiers."""

from __future__ import annotations

import json
import unittest
from datetime import datetime, timedelta, timezone
from typing import Any

from switchyard_plugin.wire import DEFAULT_MAX_FRAME, codes, features, ids, shapes, states
from switchyard_plugin.wire.credit import Credit
from switchyard_plugin.wire.envelope import MESSAGE_TYPES, EnvelopeFault, Writer, scan
from switchyard_plugin.wire.fault import Fault
from switchyard_plugin.wire.frames import FrameReader, encode

ID = "0197f9d2-6f31-7cb1-a612-5f5b7f7b8d19"
DIGEST = "sha256:" + "ab" * 32
AT = "2026-07-11T16:20:00Z"

RECEIPT: dict[str, Any] = {
    "receiptSchemaVersion": "urn:switchyard:receipt:1", "receiptId": ID, "pluginId": "org.example.test", "publisherId": "org.example",
    "packageVersion": "1.0.0", "manifestDigest": DIGEST, "capabilityId": "test.basic", "operationName": "echo", "operationVersion": "1.0",
    "operationId": ID, "idempotencyKey": None, "attempt": 1, "executionState": "completed", "effectState": "none", "startedAtUtc": AT,
    "issuedAtUtc": AT, "requestDigest": DIGEST, "resultDigest": None, "itemCount": 0, "byteCount": 0, "errorCode": None, "expiresAtUtc": AT,
}  # fmt: skip

# One body of each type, with every optional member.
BODIES: dict[str, dict[str, Any]] = {
    "hello": {"hostVersion": "1", "protocol": {"min": "1.0", "max": "1.2"}, "requires": [], "supports": ["cancel.v1", "x.y"], "codecs": ["json"], "maxFrameBytes": 1024},
    "helloAck": {"protocolVersion": "1.2", "enabledFeatures": [], "requires": [], "codec": "json", "maxFrameBytes": 1024, "manifestDigest": DIGEST,
                 "plugin": {"pluginId": "a.b", "publisherId": "a.b", "packageVersion": "1.0.0"},
                 "deprecations": [{"element": "capability:aa", "deprecatedSince": AT, "sunsetAfter": AT, "replacement": "capability:bb", "behaviorAfterSunset": "error"}]},
    "init": {"instanceId": "i", "grants": [{"permissionsGrantId": "g", "permissionId": "files", "scope": "filesystem.read", "expiresAtUtc": AT}],
             "settings": {"a": None}, "settingsDigest": DIGEST, "limits": {"requestTimeoutMs": 1, "heartbeatIntervalMs": 1, "maxInFlight": 1}, "acceptedClasses": ["public"]},
    "initAck": {"status": "ready", "message": "m", "capabilities": [{"id": "aa", "version": "1.0.0", "operations": [{"name": "bb", "operationVersion": "1.0"}]}]},
    "settingsValidate": {"settings": {}},
    "settingsValidated": {"valid": False, "normalized": {}, "problems": [{"path": "/a", "message": "m"}]},
    "request": {"requestId": ID, "operationId": ID, "idempotencyKey": "k", "attempt": 1, "deadlineUtc": AT, "capabilityId": "aa", "operationName": "bb",
                "operationVersion": "1.0", "permissionsGrantId": None, "payloadClass": "internal", "payload": None,
                "stream": {"request": True, "response": True, "initialCreditItems": 0, "initialCreditBytes": 0},
                "diagnosticPolicy": "explicit-debug", "retention": "none", "secrets": {"/a": "s"}},
    "response": {"requestId": ID, "operationId": ID, "payloadClass": "public", "payload": [1], "receipt": RECEIPT},
    "error": {"code": "conflict", "message": "m", "retryable": True, "blameDomain": "caller", "severity": "error", "requestId": ID, "operationId": None,
              "details": {}, "receipt": RECEIPT, "existingOperationId": ID, "supportedProtocol": {"min": "1.0", "max": "1.2"}, "recommendedProtocolVersion": "1.0"},
    "progress": {"requestId": ID, "operationId": ID, "message": "m", "percentCompleted": 12.5, "current": 1, "total": 2},
    "streamItem": {"requestId": ID, "operationId": ID, "index": 0, "payload": {}},
    "streamEnd": {"requestId": ID, "operationId": ID, "itemCount": 1, "byteCount": 2},
    "flow": {"requestId": ID, "creditItems": 1, "creditBytes": 2},
    "cancel": {"requestId": ID, "reason": ""},
    "cancelAck": {"requestId": ID},
    "cancelled": {"requestId": ID, "operationId": ID, "receipt": RECEIPT},
    "healthCheck": {"watch": True},
    "health": {"status": "healthy", "message": "m", "updatedAtUtc": AT},
    "heartbeat": {"nonce": "n"},
    "heartbeatAck": {"nonce": "n"},
    "receiptQuery": {"receiptId": ID},
    "receipt": RECEIPT,
    "goAway": {"lastAcceptedSequence": 0, "reason": "r", "graceMs": 0},
}  # fmt: skip


class FramesTest(unittest.TestCase):
    def test_any_split(self) -> None:
        stream = encode(b"{}") + encode(b'{"a":1}')
        for size in range(1, len(stream) + 1):
            reader = FrameReader()
            got = []
            for i in range(0, len(stream), size):
                reader.feed(stream[i : i + size])
                got += list(reader.frames())
            reader.end()
            self.assertEqual(got, [b"{}", b'{"a":1}'])

    def test_bad_lengths(self) -> None:
        for head, code in (
            (b"\0\0\0\0", codes.FRAME_INVALID),
            (b"\x80\0\0\0", codes.FRAME_INVALID),
            (b"\xff\xff\xff\xff", codes.FRAME_INVALID),
            ((DEFAULT_MAX_FRAME + 1).to_bytes(4, "big"), codes.FRAME_TOO_LARGE),
        ):
            reader = FrameReader()
            reader.feed(head)
            with self.assertRaises(Fault) as caught:
                reader.next()
            self.assertEqual(caught.exception.code, code)
        for part in (b"\0", b"\0\0\0\2{"):
            reader = FrameReader()
            reader.feed(part)
            self.assertIsNone(reader.next())
            with self.assertRaises(Fault) as caught:
                reader.end()
            self.assertEqual(caught.exception.code, codes.FRAME_INVALID)
        with self.assertRaises(Fault):
            encode(b"x" * 11, 10)

    def test_the_limit_may_change(self) -> None:
        reader = FrameReader()
        reader.feed(encode(b"x" * 20) + encode(b"y" * 20))
        self.assertEqual(reader.next(), b"x" * 20)
        reader.limit = 10
        with self.assertRaises(Fault):
            reader.next()


class EnvelopeTest(unittest.TestCase):
    def frame(self, **change: Any) -> bytes:
        members: dict[str, Any] = {
            "protocolVersion": "1.1", "messageType": "heartbeat", "messageId": ID, "sequence": 1, "timestampUtc": AT,
            "traceId": None, "causationId": None, "heartbeat": {"nonce": "n"}, "extensions": {},
        }  # fmt: skip
        for name, value in change.items():
            if value is ...:
                del members[name]
            else:
                members[name] = value
        return json.dumps(members).encode()

    def test_valid(self) -> None:
        for change in (
            {},
            {"traceId": "4BF92f3577b34da6a3ce929d0e0e4736"},
            {"causationId": ID.upper()},
            {"messageId": "00000000-0000-0000-0000-000000000000"},
            {"sequence": 2**53 - 1},
            {"timestampUtc": "2026-07-11T16:20:00.123456Z"},
            {"extensions": {"com.example.trace": {"any": [None]}, "x.y": None}},
        ):
            with self.subTest(change):
                self.assertEqual(scan(self.frame(**change)).body, {"nonce": "n"})
        self.assertEqual(scan(self.frame(messageId=ID.upper())).message_id, ID)

    def test_invalid(self) -> None:
        for change in (
            {"protocolVersion": "1"}, {"protocolVersion": "01.0"}, {"protocolVersion": 1.1}, {"protocolVersion": None},
            {"messageType": "hallo"}, {"messageType": 1}, {"messageId": "x"}, {"messageId": None}, {"messageId": "{" + ID[1:]},
            {"sequence": 0}, {"sequence": -1}, {"sequence": 1.5}, {"sequence": "1"}, {"sequence": True},
            {"timestampUtc": "2026-02-30T00:00:00Z"}, {"timestampUtc": "2026-07-11t16:20:00Z"}, {"timestampUtc": "2026-07-11T16:20:60Z"},
            {"timestampUtc": "2026-07-11T16:20:00.1234567Z"}, {"timestampUtc": "2026-07-11T16:20:00+00:00"}, {"timestampUtc": 5},
            {"traceId": "x" * 32}, {"traceId": "0" * 31}, {"traceId": 1}, {"causationId": "x"}, {"causationId": 1},
            {"extensions": []}, {"extensions": {"trace": 1}}, {"extensions": {"Com.x": 1}}, {"extensions": {"com.x": "y" * (16 << 10)}},
            {"extra": 1}, {"heartbeat": ...}, {"hello": {}}, *({name: ...} for name in (
                "protocolVersion", "messageType", "messageId", "sequence", "timestampUtc", "traceId", "causationId", "extensions")),
        ):  # fmt: skip
            with self.subTest(str(change)[:80]), self.assertRaises(EnvelopeFault) as caught:
                scan(self.frame(**change))
            self.assertEqual(caught.exception.code, codes.ENVELOPE_INVALID)
        for frame, code in ((b"[]", codes.ENVELOPE_INVALID), (b"{", codes.JSON_SYNTAX), (b'{"a":1,"a":2}', codes.JSON_DUPLICATE_NAME)):
            with self.assertRaises(EnvelopeFault) as caught:
                scan(frame)
            self.assertEqual(caught.exception.code, code)

    def test_extensions_are_counted_as_written(self) -> None:
        room = (16 << 10) - len('{"com.x": ""}')
        scan(self.frame(extensions={"com.x": "y" * room}))
        with self.assertRaises(EnvelopeFault):
            scan(self.frame(extensions={"com.x": "y" * room}).replace(b'"com.x": ', b'"com.x":   '))

    def test_writing(self) -> None:
        writer = Writer("1.2")
        seen = []
        for kind, body in BODIES.items():
            envelope = scan(writer.encode(kind, json.dumps(body), ID, "ab" * 16))
            writer.commit()
            self.assertEqual((envelope.type, envelope.body, envelope.causation_id, envelope.trace_id), (kind, body, ID, "ab" * 16))
            seen.append((envelope.sequence, envelope.message_id))
        self.assertEqual([s for s, _ in seen], list(range(1, len(seen) + 1)))
        self.assertEqual(sorted(i for _, i in seen), [i for _, i in seen])


class ShapesTest(unittest.TestCase):
    def test_every_type_has_a_shape_and_an_example(self) -> None:
        self.assertEqual(set(shapes.SHAPES), set(MESSAGE_TYPES))
        self.assertEqual(set(BODIES), set(MESSAGE_TYPES))

    def test_valid(self) -> None:
        for kind, body in BODIES.items():
            with self.subTest(kind):
                self.assertEqual(shapes.check(kind, body), body)
                required = {n: v for n, v in body.items() if n not in shapes.SHAPES[kind].optional or kind == "receiptQuery"}
                shapes.check(kind, required)
        shapes.check("receiptQuery", {"pluginId": "a.b", "capabilityId": "aa", "operationName": "bb", "idempotencyKey": "k"})

    def test_one_fault_each(self) -> None:
        """Every member of every body: absent, of another type, null, and beside an unknown one."""
        faults = 0
        for kind, body in BODIES.items():
            shape = shapes.SHAPES[kind]
            for name in body:
                for value in ({"nested": []}, None, ["x"], "\u0000", -1, True):
                    try:
                        shapes.check(kind, {**body, name: value})
                    except Fault as fault:
                        self.assertIn(fault.code, (codes.SCHEMA_MISMATCH, codes.SCHEMA_UNKNOWN_MEMBER))
                        self.assertTrue(fault.path.startswith(f"/{name}"), (kind, name, value, fault.path))
                        faults += 1
                if name not in shape.optional:
                    with self.assertRaises(Fault) as caught:
                        shapes.check(kind, {n: v for n, v in body.items() if n != name})
                    self.assertEqual((caught.exception.code, caught.exception.path), (codes.SCHEMA_MISMATCH, f"/{name}"))
            with self.assertRaises(Fault) as caught:
                shapes.check(kind, {**body, "Extra": 1})
            self.assertEqual(caught.exception.code, codes.SCHEMA_UNKNOWN_MEMBER)
            for value in (None, [], "x", 1):
                with self.assertRaises(Fault):
                    shapes.check(kind, value)
        self.assertGreater(faults, 400)

    def test_receipt_queries(self) -> None:
        for body in ({}, {"receiptId": ID, "pluginId": "a.b"}, {"pluginId": "a.b"}):
            with self.assertRaises(Fault):
                shapes.check("receiptQuery", body)

    def test_secrets_are_in_no_fault(self) -> None:
        for secrets in ({"hunter2": "/a"}, {"/a": 5, "hunter2": "x"}, ["hunter2"]):
            with self.assertRaises(Fault) as caught:
                shapes.check("request", {**BODIES["request"], "secrets": secrets})
            self.assertNotIn("hunter2", str(caught.exception))


class NegotiationTest(unittest.TestCase):
    def offer(self, **change: Any) -> features.Offer:
        given: dict[str, Any] = {"streams": False, "requires_heartbeat": False, **change}
        return features.plugin_offer((1, 0), (1, 2), ["cancel.v1", "flow.credit.v1", "heartbeat.v1", "codec.cbor.v1"], **given)

    def host(self, lowest: features.Version, highest: features.Version, *requires: str, **more: Any) -> features.Offer:
        return features.Offer(lowest, highest, requires, ["cancel.v1", "flow.credit.v1", "heartbeat.v1", "codec.cbor.v1", "unknown.v9"], **more)

    def test_versions(self) -> None:
        for lowest, highest, version in (
            ((1, 0), (1, 0), (1, 0)), ((1, 0), (1, 1), (1, 1)), ((1, 0), (1, 2), (1, 2)), ((1, 0), (1, 9), (1, 2)), ((1, 2), (1, 3), (1, 2)), ((1, 0), (2, 3), (1, 2)), ((0, 9), (1, 1), (1, 1)),
        ):  # fmt: skip
            self.assertEqual(features.negotiate(self.host(lowest, highest), self.offer()).version, version)
        for host, offer, recommended in (
            (self.host((1, 3), (1, 4)), self.offer(), (1, 2)),
            (self.host((2, 0), (2, 1)), self.offer(), (1, 2)),
            (self.host((1, 0), (1, 0)), self.offer(streams=True), (1, 1)),
            (self.host((1, 0), (1, 1)), self.offer(requires_heartbeat=True), (1, 2)),
        ):
            with self.assertRaises(features.Disagreement) as caught:
                features.negotiate(host, offer)
            self.assertEqual((caught.exception.code, caught.exception.recommended), (codes.UNSUPPORTED_PROTOCOL, recommended))

    def test_features(self) -> None:
        agreed = features.negotiate(self.host((1, 0), (1, 2), max_frame_bytes=2048), self.offer())
        self.assertEqual((agreed.features, agreed.max_frame_bytes, agreed.codec), (("cancel.v1", "flow.credit.v1", "heartbeat.v1"), 2048, "json"))
        self.assertEqual(features.negotiate(self.host((1, 0), (1, 0)), self.offer()).features, ())
        for host in (self.host((1, 0), (1, 0), "cancel.v1"), self.host((1, 0), (1, 2), "made.up.v1"), self.host((1, 0), (1, 2), codecs=["cbor"])):
            with self.assertRaises(features.Disagreement) as caught:
                features.negotiate(host, self.offer())
            self.assertEqual(caught.exception.code, codes.MISSING_REQUIRED_FEATURE)
        self.assertEqual(list(self.offer(streams=True, requires_heartbeat=True).requires), ["flow.credit.v1", "heartbeat.v1"])


class TablesTest(unittest.TestCase):
    def test_states(self) -> None:
        self.assertEqual([t.name for t in states.TABLES], ["connection", "lifecycle", "operation", "cancellation", "shutdown"])
        for table in states.TABLES:
            self.assertTrue(all(a in table.states and b in table.states for a, b in table.edges), table.name)
            for before in table.states:
                for after in table.states:
                    machine = states.Machine(table)
                    machine.state = before
                    if (before, after) in table.edges:
                        machine.move(after)
                        self.assertEqual(machine.state, after)
                    else:
                        with self.assertRaises(Fault) as caught:
                            machine.move(after)
                        self.assertEqual((caught.exception.code, machine.state), (codes.STATE_VIOLATION, before))
        self.assertTrue(states.CONNECTION.final("CLOSED"))
        self.assertTrue(states.OPERATION.final("TERMINAL"))
        self.assertFalse(states.OPERATION.allows("COMPLETED", "CANCELLING"))

    def test_codes(self) -> None:
        self.assertEqual(len(codes.CODES), 39)
        self.assertEqual(codes.blame(codes.SCHEMA_MISMATCH, "host"), "host")
        self.assertEqual(codes.blame(codes.REVOKED, "plugin"), "host")
        self.assertTrue(codes.retryable(codes.CONFLICT) and not codes.retryable(codes.INTERNAL))
        self.assertTrue(codes.retryable(codes.PLUGIN_CRASHED, True) and not codes.retryable(codes.PLUGIN_CRASHED))
        self.assertTrue(codes.fatal("json.limit") and not codes.fatal("not_found") and not codes.fatal("made.up"))

    def test_credit(self) -> None:
        credit = Credit()
        self.assertFalse(credit.covers(1) or credit.too_large(10**9))
        credit.grant(2, 100)
        self.assertTrue(credit.covers(100) and not credit.covers(101) and credit.too_large(101))
        credit.take(60)
        credit.grant(0, 60)
        self.assertEqual((credit.items, credit.bytes), (1, 100))
        receiver = Credit()
        receiver.grant(1, 10)
        self.assertTrue(receiver.receive(10))
        self.assertTrue(receiver.receive(1), "one that was on its way")
        self.assertFalse(receiver.receive(1))
        receiver.grant(2, 10)
        self.assertTrue(receiver.receive(1))


class IdentifiersTest(unittest.TestCase):
    def test_uuids(self) -> None:
        made = [ids.uuid7() for _ in range(10_000)]
        self.assertEqual(made, sorted(set(made)))
        self.assertTrue(all(ids.is_uuid(u) and u[14] == "7" and u[19] in "89ab" for u in made))
        self.assertFalse(ids.is_uuid("0197f9d2-6f31-7cb1-a612-5f5b7f7b8d1") or ids.is_uuid(ID + "\n"))

    def test_times(self) -> None:
        at = datetime(2026, 1, 2, 3, 4, 5, 60, timezone(timedelta(hours=1)))
        self.assertEqual(ids.format_timestamp(at), "2026-01-02T02:04:05.00006Z")
        self.assertEqual(ids.parse_timestamp("2026-01-02T02:04:05.00006Z"), at)
        self.assertEqual(ids.format_timestamp(ids.parse_timestamp("9999-12-31T23:59:59Z")), "9999-12-31T23:59:59Z")
        ids.parse_timestamp(ids.timestamp_now())
        for text in ("0000-01-01T00:00:00Z", "2025-02-29T00:00:00Z", "2026-01-02T24:00:00Z", "2026-01-02T03:04:05", "２026-01-02T03:04:05Z"):
            with self.assertRaises(ValueError):
                ids.parse_timestamp(text)
        with self.assertRaises(ValueError):
            ids.format_timestamp(datetime(2026, 1, 1))


if __name__ == "__main__":
    unittest.main()
