"""The durable record of operations, in the plugin's private directory.

A directory receipts/ holds one file for each thing that happened: NAME.json, NAME
being the hexadecimal SHA-256 over the canonical form of the dedup tuple
{capabilityId, idempotencyKey, operationName, pluginId}, or of {receiptId} where
there is no key. It is written beside and renamed, after it is on the disk. Whoever runs
the operation holds an advisory lock (flock) on NAME.lock; a record in_progress whose lock
nobody holds belongs to a process that died: it is abandoned, and never run again.
The Go SDK reads and writes the same files.
"""

from __future__ import annotations

import os
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple, Optional

from .models import PluginError
from .wire import codes, jcs, shapes, strictjson
from .wire.fault import Fault
from .wire.ids import format_timestamp, parse_timestamp, utc_now

DIRECTORY = "receipts"

KEPT = {
    "none": timedelta(days=7),
    "ephemeral": timedelta(days=1),
    "short": timedelta(days=30),
    "audit": timedelta(days=365),
}
"""For how long a receipt deduplicates, by the request's retention."""


class Record(NamedTuple):
    """One file: the receipt, and what the operation ended with.

    result is the JSON of the response's payload, None where it was not kept; error is
    {code, message, retryable} of one that failed.
    """

    receipt: dict[str, Any]
    result: Optional[str] = None
    error: Optional[dict[str, Any]] = None


class Claim:
    """The right to run an operation and to write its record. release() must be called."""

    def __init__(self, store: "ReceiptStore", name: str, lock: Optional[int]) -> None:
        self._store = store
        self._name = name
        self._lock = lock

    def write(self, record: Record) -> None:
        """Puts the record on the disk. Raises OSError."""
        self._store._write(self._name, record)

    def release(self) -> None:
        """Lets go of the claim."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class Refused(PluginError):
    """Why an operation does not run (again)."""

    def __init__(self, code: str, message: str, receipt: Optional[dict[str, Any]], existing: Optional[str] = None) -> None:
        super().__init__(code, message)
        self.receipt = receipt
        self.existing_operation_id = existing


def request_digest(capability: str, operation: str, version: str, payload: Any) -> str:
    """Returns the digest that tells whether two requests ask for the same."""
    return jcs.digest(
        {"capabilityId": capability, "operationName": operation, "operationVersion": version, "payload": payload}
    )


def tuple_name(plugin_id: str, capability_id: str, operation_name: str, idempotency_key: str) -> str:
    """Returns the name of the file of a dedup tuple."""
    return _name(
        {
            "pluginId": plugin_id,
            "capabilityId": capability_id,
            "operationName": operation_name,
            "idempotencyKey": idempotency_key,
        }
    )


def _name(value: dict[str, str]) -> str:
    return sha256(jcs.canonical(value)).hexdigest()


class ReceiptStore:
    """The records below the directory that SWITCHYARD_PLUGIN_STATE names."""

    def __init__(self, state: str) -> None:
        self.directory = os.path.join(state, DIRECTORY)

    def _prepare(self) -> None:
        os.makedirs(self.directory, mode=0o700, exist_ok=True)

    def claim(self, draft: dict[str, Any]) -> Claim | Record:
        """Claims the operation that a receipt in_progress describes.

        Returns the record of the one that has ended, if its end is to be told again.
        Raises Refused where it must neither run nor be told, OSError.
        """
        import fcntl

        self._prepare()
        if draft["idempotencyKey"] is None:
            return Claim(self, _name({"receiptId": draft["receiptId"]}), None)
        name = tuple_name(draft["pluginId"], draft["capabilityId"], draft["operationName"], draft["idempotencyKey"])
        lock = os.open(os.path.join(self.directory, name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise self._running(name, draft) from None
            before = self._read(name)
            if before is not None and parse_timestamp(before.receipt["expiresAtUtc"]) > utc_now():
                known = self._known(name, before, draft)
                if known is not None:
                    os.close(lock)
                    return known
            claim = Claim(self, name, lock)
            claim.write(Record(draft))
            return claim
        except BaseException:
            os.close(lock)
            raise

    def _running(self, name: str, draft: dict[str, Any]) -> Refused:
        record = self._read(name)
        if record is None:
            return Refused(codes.CONFLICT, "the operation is running", None)
        receipt = record.receipt
        if receipt["requestDigest"] != draft["requestDigest"]:
            return _other_request(receipt)
        return Refused(codes.CONFLICT, "the operation is running", receipt, receipt["operationId"])

    def _known(self, name: str, record: Record, draft: dict[str, Any]) -> Optional[Record]:
        """Returns the record to be told again, None if the operation may run. The lock is held."""
        receipt = record.receipt
        if receipt["requestDigest"] != draft["requestDigest"]:
            raise _other_request(receipt)
        state, effect = receipt["executionState"], receipt["effectState"]
        if state == "in_progress":
            receipt = {**receipt, "executionState": "abandoned", "effectState": "unknown", "issuedAtUtc": format_timestamp(utc_now())}
            self._write(name, Record(receipt))
            state = "abandoned"
        if state == "abandoned" or effect in ("unknown", "partial"):
            raise Refused(codes.FAILED_PRECONDITION, "an earlier attempt ended without a known effect; it is never run again", receipt)
        if state == "failed" and effect == "none" and record.error is not None and record.error["retryable"]:
            return None
        if state == "cancelled":
            if effect == "none":
                return None
            raise Refused(codes.FAILED_PRECONDITION, "an earlier attempt was cancelled", receipt)
        return record

    def find(self, query: dict[str, Any]) -> Optional[dict[str, Any]]:
        """Returns the receipt that a receiptQuery asks for, as it is now; None if there is none."""
        if "receiptId" not in query:
            return self._current(tuple_name(query["pluginId"], query["capabilityId"], query["operationName"], query["idempotencyKey"]))
        found = self._current(_name({"receiptId": query["receiptId"]}))
        if found is not None:
            return found
        try:
            names = os.listdir(self.directory)
        except FileNotFoundError:
            return None
        for file in names:
            if file.endswith(".json"):
                record = self._read(file.removesuffix(".json"))
                if record is not None and record.receipt["receiptId"] == query["receiptId"]:
                    return self._current(file.removesuffix(".json"))
        return None

    def _current(self, name: str) -> Optional[dict[str, Any]]:
        import fcntl

        record = self._read(name)
        if record is None:
            return None
        receipt = record.receipt
        if receipt["executionState"] == "in_progress":
            lock = os.open(os.path.join(self.directory, name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
                again = self._read(name)
                receipt = again.receipt if again is not None else receipt
                if receipt["executionState"] == "in_progress":
                    receipt = {**receipt, "executionState": "abandoned", "effectState": "unknown"}
            except BlockingIOError:
                pass
            finally:
                os.close(lock)
        return receipt

    def _read(self, name: str) -> Optional[Record]:
        try:
            with open(os.path.join(self.directory, name + ".json"), "rb") as file:
                data = file.read()
        except FileNotFoundError:
            return None
        try:
            return _parse(strictjson.loads(data))
        except (strictjson.StrictError, Fault):
            raise OSError(f"the record {name}.json is damaged") from None

    def _write(self, name: str, record: Record) -> None:
        path = os.path.join(self.directory, name + ".json")
        beside = f"{path}.{os.getpid()}.tmp"
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            try:
                os.write(fd, _render(record))
                os.fsync(fd)
            finally:
                os.close(fd)
            os.rename(beside, path)
        except BaseException:
            os.unlink(beside)
            raise
        folder = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _other_request(receipt: dict[str, Any]) -> Refused:
    return Refused(codes.ALREADY_EXISTS, "the idempotency key belongs to another request", receipt)


_record = shapes.Shape(
    {
        "receipt": shapes.RECEIPT,
        "result": shapes.anything,
        "error": shapes.Shape({"code": shapes.one_of(*codes.CODES), "message": shapes.text(), "retryable": shapes.boolean}),
    },
    optional="result error",
)


def _parse(value: Any) -> Record:
    members = _record(value)
    result = strictjson.dumps(members["result"]) if "result" in members else None
    return Record(members["receipt"], result, members.get("error"))


def _render(record: Record) -> bytes:
    parts = [f'"receipt":{strictjson.dumps(record.receipt)}']
    if record.result is not None:
        parts.append(f'"result":{record.result}')
    if record.error is not None:
        parts.append(f'"error":{strictjson.dumps(record.error)}')
    return ("{" + ",".join(parts) + "}").encode()


def expiry(retention: str, now: datetime) -> str:
    """Returns expiresAtUtc for a request with this retention."""
    return format_timestamp(now + KEPT[retention])
