"""`reseller doctor`: what is set, what is wrong with this machine, the database and the keyring, and how to mend it."""

import asyncio
import importlib.util
import os
import socket
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from registry.clock import SystemClock
from registry.errors import Refusal
from registry.ids import SystemIds
from registry.limits import TIERS, TierLimits
from storage.backlog import late_work
from storage.engine.database_url import NotUtf8
from storage.engine.migrate import SchemaMismatch, current_schema, refuse_unknown
from storage.engine.postgres_server import BESIDE_POOL, BESIDE_POOL_OF_WORKER, server_capacity
from storage.engine.revision import HEAD
from storage.engine.sql import Connection
from storage.engine.store import open_store
from storage.histories import partition_state
from storage.rekey import count_of_key, count_sealed
from storage.replicas import ReplicaKeys, running_keys
from transports.cli.outside_checks import (
    Finding,
    FindingNote,
    examine_identity,
    examine_mail,
    examine_model,
    examine_outages,
    examine_payments,
    examine_upstream,
    read_answer,
)
from transports.cli.terminal import Failure, command_settings, print_line
from transports.keyring import checked_keyring, keyring_path, others_may_read, refuse_lost_keyring
from transports.settings import SETTING_PREFIX, BadSettings, Settings, UnknownSetting
from transports.settings_files import files_open_to_others

PUT_KEYRING_BACK = "put back the keyring that sealed this database; every replica needs the same one"


def examine_keyring(settings: Settings) -> Iterator[Finding]:
    """There must be a keyring, the one that sealed this database, and all processes must know the key that seals."""
    path, ids = keyring_path(settings), SystemIds(SystemClock())
    try:
        if path is not None and not path.exists():
            refuse_lost_keyring(settings)
            yield Finding("keyring", "none yet, made at the first start")
            return
        if path is not None and others_may_read(path):
            yield Finding("keyring", f"{path} can be read by others", f"chmod 600 {path}")
            return
        _, ring = checked_keyring(settings, ids)
        if current_schema(settings.store_url).is_spoken:
            yield from examine_database_keys(settings.store_url, ring.key_ids)
    except BadSettings as wrong:
        yield Finding("keyring", str(wrong), PUT_KEYRING_BACK)
        return
    except (Refusal, SchemaMismatch, sqlite3.Error):
        yield Finding("keyring", "not compared with the database, which cannot be read")
        return
    yield Finding("keyring", "from SERVICE_SECRET_KEYS" if path is None else str(path))


def examine_database_keys(url: str, key_ids: Sequence[str]) -> Iterator[Finding]:
    """Stored values that no key here opens, and processes that know other keys."""
    running, unopened = asyncio.run(read_key_use(url, key_ids))
    if unopened:
        yield Finding("keyring", f"{unopened} stored values are sealed with a key that is not in the keyring", PUT_KEYRING_BACK)
    for process in running:
        if process.known:
            yield from key_difference(process, key_ids)


async def read_key_use(url: str, key_ids: Sequence[str]) -> tuple[list[ReplicaKeys], int]:
    """The running processes, and how many values none of these keys opens."""
    store = open_store(url)
    try:
        running = await store.read(running_keys, now=SystemClock().now())
        return running, await store.read(count_unopened, key_ids=key_ids)
    finally:
        await store.aclose()


def count_unopened(connection: Connection, *, key_ids: Sequence[str]) -> int:
    """How many values were sealed with none of these keys."""
    return count_sealed(connection) - sum(count_of_key(connection, key_id=key_id) for key_id in key_ids)


def key_difference(process: ReplicaKeys, key_ids: Sequence[str]) -> Iterator[Finding]:
    """How the keys of `process` differ from these."""
    seals, missing = process.known[0], [key_id for key_id in key_ids if key_id not in process.known]
    if seals not in key_ids:
        yield Finding("keyring", f"process {process.id} seals with key {seals}, which is not in the keyring", PUT_KEYRING_BACK)
    elif key_ids[0] in missing:
        fix = f"put key {key_ids[0]} behind the others, restart every process, and move it to the front when all know it"
        yield Finding("keyring", f"process {process.id} does not know key {key_ids[0]}, which stands first here", fix)
    elif missing:
        yield FindingNote("keyring", f"process {process.id} does not know key {', '.join(missing)}; key {seals} seals: restart it")
    elif seals != key_ids[0]:
        yield FindingNote(
            "keyring", f"process {process.id} knows all keys and seals with key {seals}: restart it, so that key {key_ids[0]} seals"
        )


PARTITION_FIX = "run a worker: it makes the partitions and moves the rows within minutes; if one runs, its log says what hinders it"


def examine_partitions(settings: Settings) -> Finding:
    try:
        state = partition_state(settings.store_url)
    except Refusal as error:
        return Finding("history", f"PostgreSQL: {error}", "check SERVICE_DATABASE_URL, and that the server runs")
    if state.without:
        rows = ", ".join(f"{rows} of {name}" for name, rows in state.without.items())
        return Finding("history", f"rows without a partition: {rows}", PARTITION_FIX)
    if state.whole:
        return FindingNote(
            "history", f"no partitions yet: {', '.join(state.whole)}; a worker makes them once every process has this version"
        )
    return Finding("history", f"partitions up to {datetime.fromtimestamp(min(state.until.values()), UTC):%Y-%m-%d}")


def examine_retention(settings: Settings) -> Finding:
    """How long each kind of history is kept; what the settings do not name is kept for ever."""
    days = ", ".join(f"{kind.replace('_', ' ')} {days} days" for kind, days in asdict(settings.history_days).items() if days)
    return Finding("retention", f"{days}; the rest for ever" if days else "all for ever")


LATE_WORK_SECONDS = 120.0
LATE_WORK_FIX = "run a worker, or one more (reseller worker); if one runs, its log says what hinders it"


def examine_late_work(settings: Settings) -> Finding:
    """Work that is late by more than two minutes."""
    try:
        found = late_work(settings.store_url, now=SystemClock().now())
    except Refusal as error:
        return Finding("work", f"PostgreSQL: {error}", "check SERVICE_DATABASE_URL, and that the server runs")
    running = f"servers and workers that run: {found.processes}"
    late = [f"{kind} for {seconds:.0f} s" for kind, seconds in sorted(found.late.items()) if seconds > LATE_WORK_SECONDS]
    if late:
        return Finding("work", f"late: {', '.join(late)}; {running}", LATE_WORK_FIX)
    return Finding("work", f"nothing is late; {running}")


PROXIES_NOTE = "SERVICE_TRUSTED_PROXIES is unset: behind a proxy all who show no credential share one address, and its limits"

NO_ADDRESS_NOTE = (
    "SERVICE_BASE_URL is empty: Host names that a proxy hands on are refused with 421, unless SERVICE_ALLOWED_HOSTS has them, "
    "and links lead to the address that the server listens on"
)


def examine_defaults(settings: Settings) -> Iterator[Finding]:
    """Limits, authorities and proxies. A proxy is expected in production only."""
    for tier, limits in settings.tiers.items():
        name, shown = f"SERVICE_LIMITS_{tier.upper()}", limits_text(limits)
        yield Finding("limits", f"{tier}: {shown}" + (f"; {name} is unset" if limits == TIERS[tier] else ""))
    yield Finding("trust", trust_text(settings))
    if settings.trusted_proxies:
        yield Finding("proxies", ", ".join(map(str, settings.trusted_proxies)))
        if not settings.base_url:
            yield FindingNote("proxies", NO_ADDRESS_NOTE)
    elif settings.env == "production":
        yield FindingNote("proxies", PROXIES_NOTE)


def limits_text(limits: TierLimits) -> str:
    return (
        f"{limits.calls_per_day} calls a day, {limits.burst_per_second:g} a second ({limits.burst_size} at once), "
        f"{limits.ai_calls_per_day} questions to a model a day"
    )


def trust_text(settings: Settings) -> str:
    instead = os.environ.get("SSL_CERT_FILE", "")
    public = f"the authorities in {instead} (SSL_CERT_FILE)" if instead else "public authorities"
    return public + (f", and those in {settings.ca_file}" if settings.ca_file is not None else "; SERVICE_CA_FILE is unset")


CLOCK_TOLERANCE_SECONDS = 5.0
FIRST_START_NOTE = "made at the first start; where `serve` has another directory, name it with --data or SERVICE_DATA"


def doctor(data: Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")] = None) -> None:
    """Check Python, packages, settings, database, port, clock, upstream, payments, model and mail; every problem comes with its fix."""
    try:
        settings = command_settings(data=data)
        found = list(examine_everything(settings))
    except BadSettings as wrong:
        found = [Finding("settings", str(wrong), settings_fix(wrong))]
    for finding in found:
        print_line(f"{finding.mark:<4} {finding.subject:<10} {finding.state}" + (f"\n     fix: {finding.fix}" if finding.fix else ""))
    if any(finding.fix for finding in found):
        raise Failure("something needs mending, see above", exit_code=1)


def settings_fix(wrong: BadSettings) -> str:
    """How to fix settings that cannot be read."""
    if not isinstance(wrong, UnknownSetting):
        return "change it in the environment, in .env or in the directory of SERVICE_SECRETS_DIR"
    known = "known settings: " + ", ".join(SETTING_PREFIX + name.upper() for name in Settings.model_fields)
    return f"rename it to {wrong.near}; {known}" if wrong.near else known


def examine_everything(settings: Settings) -> Iterator[Finding]:
    """Every check, in the order in which a start would meet them."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", version, None if sys.version_info >= (3, 11) else "use Python 3.11 or newer")
    missing = [name for name in ("uvloop", "httptools", "orjson", "cryptography", "mcp") if importlib.util.find_spec(name) is None]
    yield Finding(
        "packages", f"missing {', '.join(missing)}" if missing else "complete", "python3 ./run serve installs them" if missing else None
    )
    yield Finding("settings", f"environment {settings.env}")
    yield from examine_directory(settings)
    yield (found := examine_database(settings))
    if not settings.embedded and found.fix is None:
        yield examine_capacity(settings)
        yield examine_partitions(settings)
        yield examine_late_work(settings)
    yield examine_retention(settings)
    yield examine_clock(settings)
    yield from examine_keyring(settings)
    yield examine_port(settings)
    yield examine_upstream(settings)
    yield from examine_outages(settings)
    yield examine_payments(settings)
    yield examine_model(settings)
    yield examine_mail(settings)
    yield examine_identity(settings)
    yield from examine_defaults(settings)


def examine_directory(settings: Settings) -> Iterator[Finding]:
    """Files that others may write: whoever can do that can replace database and keyring."""
    if settings.embedded and settings.data.is_dir():
        for found in files_open_to_others(settings.data):
            shown, _, way = found.rpartition(": ")
            yield Finding("data", shown, way)


def examine_database(settings: Settings) -> Finding:
    """Whether it can be reached, and its schema version."""
    shown = str(settings.data / "service.db") if settings.embedded else "PostgreSQL"
    try:
        schema = current_schema(settings.store_url)
        refuse_unknown(schema)
    except SchemaMismatch as error:
        return Finding("database", f"{shown}: {error}", "run the newer program, or put an older backup back: reseller db restore FILE")
    except NotUtf8 as error:
        return Finding("database", f"{shown}: {error.state}", error.fix)
    except (Refusal, sqlite3.Error, OSError) as error:
        way = "the directory's permissions and free space" if settings.embedded else "SERVICE_DATABASE_URL, and that the server runs"
        return Finding("database", f"{shown}: {error}", f"check {way}")
    revision = schema.revision
    if revision == HEAD:
        return Finding("database", f"{shown}, schema {revision}")
    if schema.is_newer:
        return FindingNote("database", f"{shown}, schema {revision} of a newer program, which this one works on: finish the upgrade")
    if schema.is_spoken:
        return FindingNote("database", f"{shown}, schema {revision}, the one before {HEAD}: run reseller db upgrade")
    if revision is None and settings.embedded:
        if not (settings.data / "service.db").exists():
            return FindingNote("database", f"none in {settings.data.absolute()}, {FIRST_START_NOTE}")
        return Finding("database", f"{shown}: empty, made at the first start")
    return Finding("database", f"{shown}: schema {revision}, this program needs {HEAD}", "reseller db upgrade")


def examine_capacity(settings: Settings) -> Finding:
    """Whether the server has room for the pool of one process, and for how many."""
    pool = settings.database_pool
    try:
        found = server_capacity(settings.store_url)
    except Refusal as error:
        return Finding("capacity", f"PostgreSQL: {error}", "check SERVICE_DATABASE_URL, and that the server runs")
    most = pool + BESIDE_POOL_OF_WORKER
    shown = f"{found.room} connections for us, {found.used} in use; a worker takes up to {most}, a server {pool + BESIDE_POOL}"
    if found.room < most:
        return Finding("capacity", shown, "raise max_connections, or the limit of the user or the database, or lower SERVICE_DATABASE_POOL")
    return Finding("capacity", f"{shown}: room for {found.processes(pool)} processes")


def examine_clock(settings: Settings) -> Finding:
    """Signatures, tokens and schedules need the right time; a clock that went back is noticed by later writes."""
    now, file = SystemClock().now(), settings.data / "service.db"
    behind = max((path.stat().st_mtime - now for path in (file, Path(f"{file}-wal")) if settings.embedded and path.exists()), default=0.0)
    if behind > CLOCK_TOLERANCE_SECONDS:
        return Finding("clock", f"{behind:.0f} s behind the last write to {file}", "set this machine's clock, for example by NTP")
    return Finding("clock", f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC")


def examine_port(settings: Settings) -> Finding:
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            where = f"{settings.host}:{settings.port}"
            if b'"build_sha"' in (
                read_answer(settings.host, settings.port, "/health", 1024) or b""
            ):  # whether over this database or another one, its /health does not tell
                return Finding("port", f"{where} is held by a service like this one, which answers")
            return Finding("port", f"{where} {error.strerror}", "stop what listens there, or serve with --port 0")
    return Finding("port", f"{settings.host}:{settings.port} is free")
