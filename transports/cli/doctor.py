"""`reseller doctor`: what is set, what is wrong, and how to mend it."""

import importlib.util
import os
import socket
import sqlite3
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from registry.clock import SystemClock
from registry.errors import Refusal
from storage.capacity import BESIDE_POOL, BESIDE_POOL_OF_WORKER, capacity
from storage.migrate import HEAD, SchemaMismatch, current_schema, refuse_unknown
from storage.unreachable import NotUtf8
from transports.cli.backlog_check import work
from transports.cli.certificate_check import identity
from transports.cli.encryption_check import keyring
from transports.cli.failure import Failure
from transports.cli.finding import Finding, Note
from transports.cli.history_check import history, kept
from transports.cli.mail_check import mail
from transports.cli.model_check import model
from transports.cli.outage_check import outages
from transports.cli.payments_check import payments
from transports.cli.render import print_line
from transports.cli.unset_check import unset
from transports.cli.upstream_check import upstream
from transports.data_directory import open_to_others
from transports.settings import PREFIX, BadSettings, Settings, UnknownSetting, load_settings

FINE_SECONDS = 5.0
ELSEWHERE = "made at the first start; where `serve` has another directory, name it with --data or SERVICE_DATA"


def doctor(data: Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")] = None) -> None:
    """Check Python, packages, settings, database, port, clock, upstream, payments, model and mail; every problem comes with its fix."""
    try:
        settings = load_settings(os.environ, env_file=Path(".env"), data=data)
        found = list(examine(settings))
    except BadSettings as wrong:
        found = [Finding("settings", str(wrong), way_out(wrong))]
    for finding in found:
        print_line(f"{finding.mark:<4} {finding.subject:<10} {finding.state}" + (f"\n     fix: {finding.fix}" if finding.fix else ""))
    if any(finding.fix for finding in found):
        raise Failure("something needs mending, see above", exit_code=1)


def way_out(wrong: BadSettings) -> str:
    """What to do about settings that cannot be read."""
    if not isinstance(wrong, UnknownSetting):
        return "change it in the environment, in .env or in the directory of SERVICE_SECRETS_DIR"
    known = "known settings: " + ", ".join(PREFIX + name.upper() for name in Settings.model_fields)
    return f"rename it to {wrong.near}; {known}" if wrong.near else known


def examine(settings: Settings) -> Iterator[Finding]:
    """Every check, in the order in which a start would meet them."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", version, None if sys.version_info >= (3, 11) else "use Python 3.11 or newer")
    missing = [name for name in ("uvloop", "httptools", "orjson", "cryptography", "mcp") if importlib.util.find_spec(name) is None]
    yield Finding(
        "packages", f"missing {', '.join(missing)}" if missing else "complete", "python3 ./run serve installs them" if missing else None
    )
    yield Finding("settings", f"environment {settings.env}")
    yield from directory(settings)
    yield (found := database(settings))
    if not settings.embedded and found.fix is None:
        yield connections(settings)
        yield history(settings)
        yield work(settings)
    yield kept(settings)
    yield clock(settings)
    yield from keyring(settings)
    yield port(settings)
    yield upstream(settings)
    yield from outages(settings)
    yield payments(settings)
    yield model(settings)
    yield mail(settings)
    yield identity(settings)
    yield from unset(settings)


def directory(settings: Settings) -> Iterator[Finding]:
    """Whoever may write there can replace the database and the keyring."""
    if settings.embedded and settings.data.is_dir():
        for found in open_to_others(settings.data):
            shown, _, way = found.rpartition(": ")
            yield Finding("data", shown, way)


def database(settings: Settings) -> Finding:
    """Reachable, and at which schema version."""
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
        return Note("database", f"{shown}, schema {revision} of a newer program, which this one works on: finish the upgrade")
    if schema.is_spoken:
        return Note("database", f"{shown}, schema {revision}, the one before {HEAD}: run reseller db upgrade")
    if revision is None and settings.embedded:
        if not (settings.data / "service.db").exists():
            return Note("database", f"none in {settings.data.absolute()}, {ELSEWHERE}")
        return Finding("database", f"{shown}: empty, made at the first start")
    return Finding("database", f"{shown}: schema {revision}, this program needs {HEAD}", "reseller db upgrade")


def connections(settings: Settings) -> Finding:
    """Whether the server has room for the pool of one process, and for how many."""
    pool = settings.database_pool
    try:
        found = capacity(settings.store_url)
    except Refusal as error:
        return Finding("capacity", f"PostgreSQL: {error}", "check SERVICE_DATABASE_URL, and that the server runs")
    most = pool + BESIDE_POOL_OF_WORKER
    shown = f"{found.room} connections for us, {found.used} in use; a worker takes up to {most}, a server {pool + BESIDE_POOL}"
    if found.room < most:
        return Finding("capacity", shown, "raise max_connections, or the limit of the user or the database, or lower SERVICE_DATABASE_POOL")
    return Finding("capacity", f"{shown}: room for {found.processes(pool)} processes")


def clock(settings: Settings) -> Finding:
    """Signatures, tokens and schedules need the right time; a clock that went back is seen by what was written later."""
    now, file = SystemClock().now(), settings.data / "service.db"
    behind = max((path.stat().st_mtime - now for path in (file, Path(f"{file}-wal")) if settings.embedded and path.exists()), default=0.0)
    if behind > FINE_SECONDS:
        return Finding("clock", f"{behind:.0f} s behind the last write to {file}", "set this machine's clock, for example by NTP")
    return Finding("clock", f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d %H:%M:%S} UTC")


def port(settings: Settings) -> Finding:
    """Free, or held by somebody."""
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            where = f"{settings.host}:{settings.port}"
            if answers(settings):  # whether over this database or another one, its /health does not tell
                return Finding("port", f"{where} is held by a service like this one, which answers")
            return Finding("port", f"{where} {error.strerror}", "stop what listens there, or serve with --port 0")
    return Finding("port", f"{settings.host}:{settings.port} is free")


def answers(settings: Settings) -> bool:
    """Whether a server of ours holds the port."""
    from http.client import HTTPConnection, HTTPException  # only when the port is taken

    connection = HTTPConnection(settings.host, settings.port, timeout=2)
    try:
        connection.request("GET", "/health")
        return b'"build_sha"' in connection.getresponse().read(1024)
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
