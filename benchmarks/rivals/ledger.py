"""The store of the hand-written rivals: raw sqlite3, the service's own tables, one transaction per write at synchronous=FULL.

Tuned as an expert would: time-ordered ids, a checkpointer thread instead of auto-checkpoints, statements as constant text,
a key cache that one counter read keeps honest, leased quota for reads, buffered audit rows of reads and log lines.
"""

import asyncio
import hashlib
import sqlite3
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import orjson

from benchmarks.rivals.esim import SMDP, Esim, new_esim, new_id
from benchmarks.rivals.sealing import Seal
from registry.limits import Limits

LIMIT = 1_000_000
BLOCK = max(Limits().quota_block, LIMIT // 1000)  # as many calls as the service leases at once
SCOPES = {("free", "member"): 3, ("free", "admin"): 3, ("pro", "member"): 7, ("pro", "admin"): 7, ("enterprise", "member"): 7}
READ, ANY = 1, 2

COUNTER = "SELECT value FROM change WHERE name = 'callers'"
MEMBER = (
    "SELECT k.id, m.person_id, m.organisation_id, o.tier, m.role FROM api_key k"
    " JOIN membership m ON m.person_id = k.person_id AND m.organisation_id = k.organisation_id"
    " JOIN organisation o ON o.id = m.organisation_id"
    " WHERE k.{column} = ? AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > ?)"
)
BY_DIGEST, BY_KEY = MEMBER.format(column="digest"), MEMBER.format(column="id")
CLAIM = (
    "INSERT INTO claim (organisation, operation, key, fingerprint, state, owner, claimed, expires_at, status, body)"
    " VALUES (?, 'create_connectivity_intent', ?, ?, 'done', 'rival', ?, NULL, 201, ?)"
    " ON CONFLICT (organisation, operation, key) DO NOTHING RETURNING owner"
)
CLAIMED = "SELECT fingerprint, status, body FROM claim WHERE organisation = ? AND operation = 'create_connectivity_intent' AND key = ?"
CHARGE = (
    "INSERT INTO quota (organisation, period, used) VALUES (?1, ?2, ?3) ON CONFLICT (organisation, period)"
    " DO UPDATE SET used = used + ?3 WHERE used <= ?4 RETURNING used"
)
INSERT = (
    "INSERT INTO intent (id, organisation, status, livemode, plan_id, plan, details, iccid, esim, error, used_bytes, notified_percent,"
    " attached_at, created) VALUES (?, ?, 'succeeded', 0, ?, ?, ?, ?, ?, NULL, 0, 0, NULL, ?) ON CONFLICT (iccid) DO NOTHING RETURNING id"
)
EVENT = (
    "INSERT INTO event (id, organisation, intent, type, livemode, data, dedup, retry_minute, retry_count, created)"
    " VALUES (?, ?, ?, 'esim.issued', 0, ?, ?, 0, 0, ?) ON CONFLICT (dedup) DO NOTHING RETURNING id"
)
ENDPOINTS = "SELECT id FROM webhook_endpoint WHERE organisation = ? AND status = 'enabled' ORDER BY id"
DELIVERY = (
    "INSERT INTO delivery (id, event_id, endpoint_id, organisation, state, attempt, attempts, due_ms, created_ms)"
    " VALUES (?, ?, ?, ?, 0, 0, 0, ?, ?)"
)
AUDIT = (
    "INSERT INTO audit (at, organisation, surface, operation, principal, key_id, outcome, status, milliseconds, request_id)"
    " VALUES (?, ?, ?, ?, ?, ?, 'ok', ?, ?, ?)"
)
INTENT = (
    "SELECT id, organisation, status, livemode, plan, details, iccid, esim, error, created FROM intent WHERE id = ? AND organisation = ?"
)
CONNECTION = "SELECT mode, account_id FROM organisation WHERE id = ?"


class Caller(NamedTuple):
    """Who a key belongs to."""

    key: str
    person: str
    organisation: str
    scopes: int


class Refused(Exception):
    """A refusal, with its status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Row(NamedTuple):
    """An intent as stored."""

    id: str
    organisation: str
    status: str
    livemode: int
    plan: str | None
    details: str
    iccid: str | None
    esim: str | None
    error: str | None
    created: int


class New(NamedTuple):
    """An intent to be stored, with its answer."""

    id: str
    esim: Esim
    plan_id: str
    plan: bytes
    metadata: bytes
    created: int


def open_file(path: Path) -> sqlite3.Connection:
    """A connection with the very pragmas of the service."""
    raw = sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=512)
    for pragma in (
        "busy_timeout=5000",
        "journal_mode=wal",
        "synchronous=full",
        "foreign_keys=on",
        "temp_store=memory",
        "cache_size=-65536",
        "mmap_size=268435456",
        "wal_autocheckpoint=0",
        "journal_size_limit=67108864",
    ):
        raw.execute(f"pragma {pragma}").fetchall()
    return raw


def caller_of(row: tuple[str, str, str, str, str] | None) -> Caller:
    """The caller of a key's row."""
    if row is None:
        raise Refused(401, "The API key is unknown, expired or revoked")
    key, person, organisation, tier, role = row
    return Caller(key, person, organisation, SCOPES.get((tier, role), 15))


def today() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d")


class Ledger:
    """One file, one reading and one writing connection, used on the event loop."""

    def __init__(self, data: Path) -> None:
        self.path = data / "service.db"
        self.seal = Seal(data / "keyring")
        self._read, self._write = open_file(self.path), open_file(self.path)
        self._keys: dict[bytes, tuple[int, Caller]] = {}
        self._left: dict[str, int] = {}
        self.used = 0
        self._lines: list[tuple[object, ...]] = []
        self._log: list[bytes] = []
        self._stop = threading.Event()

    def caller(self, authorization: str | None, scope: int) -> Caller:
        """The key's holder; a cached one counts only while the counter stands still."""
        if authorization is None or not authorization.startswith("Bearer "):
            raise Refused(401, "No credential: this operation needs one")
        digest = hashlib.sha256(authorization[7:].encode()).digest()
        (counter,) = self._read.execute(COUNTER).fetchone()
        cached = self._keys.get(digest)
        if cached is None or cached[0] != counter:
            cached = self._keys[digest] = (counter, caller_of(self._read.execute(BY_DIGEST, (digest, time.time())).fetchone()))
        if not cached[1].scopes & scope:
            raise Refused(402, "The tier does not carry this operation")
        return cached[1]

    def lease(self, caller: Caller) -> None:
        """One call from a block that was charged ahead."""
        left = self._left.get(caller.organisation, 0)
        if left == 0:
            row = self._write.execute(CHARGE, (caller.organisation, today(), BLOCK, LIMIT - BLOCK)).fetchone()
            if row is None:
                raise Refused(429, "The daily quota is used up")
            self.used, left = row[0], BLOCK
        self._left[caller.organisation] = left - 1

    def find(self, caller: Caller, intent: str) -> Row:
        """One intent of the caller's organisation."""
        row = self._read.execute(INTENT, (intent, caller.organisation)).fetchone()
        if row is None:
            raise Refused(404, "Your organisation has no intent with this id")
        return Row(*row)

    def connection(self, organisation: str) -> tuple[str | None, int | None] | None:
        """How an organisation reaches the charging system."""
        return self._read.execute(CONNECTION, (organisation,)).fetchone()

    def profile(self, row: Row) -> tuple[str, str, str]:
        """Activation code, address and matching id, opened."""
        assert row.esim is not None
        return tuple(orjson.loads(self.seal.open(row.esim, row.organisation, f"esim|{row.id}")))

    def issue(self, caller: Caller, new: New, key: str, fingerprint: bytes, answer: bytes, request: str, started: float) -> bytes | None:
        """All rows of a POST in one durable transaction; the stored answer when the key was used before, else None."""
        organisation, run = caller.organisation, self._write.execute
        sealed = self.seal.close(answer, organisation, f"claim|create_connectivity_intent|{key}")
        secret = orjson.dumps([new.esim.activation_code, SMDP, new.esim.matching_id])
        esim = self.seal.close(secret, organisation, f"esim|{new.id}")
        event = new_id("evt_")
        data = orjson.dumps({"intent": new.id, "iccid": new.esim.iccid, "plan": new.plan_id}).decode()
        run("begin immediate")
        try:
            now = time.time()
            if not caller_of(run(BY_KEY, (caller.key, now)).fetchone()).scopes & ANY:
                raise Refused(401, "The credential has changed since the call began")
            if run(CLAIM, (organisation, key, fingerprint, new.created, sealed)).fetchone() is None:
                run("rollback")
                return self._replay(organisation, key, fingerprint)
            charged = run(CHARGE, (organisation, today(), 1, LIMIT - 1)).fetchone()
            if charged is None:
                raise Refused(429, "The daily quota is used up")
            self.used = charged[0]
            row = (new.id, organisation, new.plan_id, new.plan.decode(), new.metadata.decode(), new.esim.iccid, esim, new.created)
            if run(INSERT, row).fetchone() is None:
                raise Refused(503, "The ICCID that was drawn is taken")
            run(EVENT, (event, organisation, new.id, data, f"issued|{new.id}", new.created)).fetchone()
            for (endpoint,) in run(ENDPOINTS, (organisation,)).fetchall():
                due = new.created * 1000
                run(DELIVERY, (new_id("dlv_"), event, endpoint, organisation, due, due))
            run(AUDIT, self._line(caller, "create_connectivity_intent", 201, request, started))
            run("commit")
        except (Refused, sqlite3.Error):
            if self._write.in_transaction:
                run("rollback")
            raise
        return None

    def record(self, caller: Caller, operation: str, request: str, started: float) -> None:
        """The audit row of a read, written within a second."""
        self._lines.append(self._line(caller, operation, 200, request, started))

    def log(self, method: str, path: str, operation: str, status: int, request: str, started: float) -> None:
        """One buffered line per request."""
        ms = round((time.monotonic() - started) * 1000, 3)
        line = {
            "time": time.time(),
            "request_id": request,
            "method": method,
            "path": path,
            "operation": operation,
            "status": status,
            "ms": ms,
        }
        self._log.append(orjson.dumps(line))

    def rate_limit(self) -> str:
        """The RateLimit header of the last call."""
        return f'"tier";r={LIMIT - self.used + sum(self._left.values())};t={86_400 - int(time.time()) % 86_400}'

    async def keep(self) -> None:
        """Flush buffered rows and lines on the loop; checkpoint on a thread of its own."""
        threading.Thread(target=self._checkpoint, daemon=True).start()
        with suppress(asyncio.CancelledError):
            while True:
                await asyncio.sleep(0.5)
                self.flush()
        self._stop.set()
        self.flush()

    def flush(self) -> None:
        """Write what was buffered."""
        lines, self._lines = self._lines, []
        if lines:
            self._write.execute("begin immediate")
            self._write.executemany(AUDIT, lines)
            self._write.execute("commit")
        written, self._log = self._log, []
        if written:
            sys.stderr.buffer.write(b"\n".join(written) + b"\n")
            sys.stderr.buffer.flush()

    def _line(self, caller: Caller, operation: str, status: int, request: str, started: float) -> tuple[object, ...]:
        ms = round((time.monotonic() - started) * 1000, 3)
        return (time.time(), caller.organisation, "http", operation, caller.person, caller.key, status, ms, request)

    def _replay(self, organisation: str, key: str, fingerprint: bytes) -> bytes:
        stored, _, body = self._write.execute(CLAIMED, (organisation, key)).fetchone()
        if stored != fingerprint:
            raise Refused(409, "This idempotency key was used with other input")
        return self.seal.open(body, organisation, f"claim|create_connectivity_intent|{key}")

    def _checkpoint(self) -> None:
        raw = open_file(self.path)
        while not self._stop.wait(0.5):
            raw.execute("pragma wal_checkpoint(passive)").fetchall()


def draw(plan_id: str, plan: bytes, metadata: bytes) -> New:
    """A new intent for a test plan."""
    return New(new_id("cni_"), new_esim(), plan_id, plan, metadata, int(time.time()))
