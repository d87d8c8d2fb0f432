"""`reseller doctor`: what is set, what is wrong, and how to mend it."""

import importlib.util
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from registry.errors import Refusal
from storage.migrate import HEAD, SchemaMismatch, current_revision
from transports.cli.failure import Failure
from transports.cli.render import print_line
from transports.settings import PREFIX, BadSettings, Settings, load_settings


class Finding(NamedTuple):
    """One check: what was looked at, how it stands, and the fix when it is not well."""

    subject: str
    state: str
    fix: str | None = None


def doctor(data: Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")] = None) -> None:
    """Check Python, packages, settings, database, port and clock; every problem comes with its fix."""
    try:
        settings = load_settings(os.environ, env_file=Path(".env"), data=data)
        found = list(examine(settings))
    except BadSettings as wrong:
        found = [Finding("settings", str(wrong), "known settings: " + ", ".join(PREFIX + n.upper() for n in Settings.model_fields))]
    for finding in found:
        print_line(
            f"{'ok ' if finding.fix is None else 'BAD'}  {finding.subject:<10} {finding.state}"
            + (f"\n     fix: {finding.fix}" if finding.fix else "")
        )
    if any(finding.fix for finding in found):
        raise Failure("something needs mending, see above", exit_code=1)


def examine(settings: Settings) -> Iterator[Finding]:
    """Every check, in the order in which a start would meet them."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("python", version, None if sys.version_info >= (3, 11) else "use Python 3.11 or newer")
    missing = [name for name in ("uvloop", "httptools", "orjson", "cryptography", "mcp") if importlib.util.find_spec(name) is None]
    yield Finding(
        "packages", f"missing {', '.join(missing)}" if missing else "complete", "python3 ./run serve installs them" if missing else None
    )
    yield Finding("settings", f"environment {settings.env}")
    yield database(settings)
    yield keyring(settings)
    yield port(settings)
    yield Finding("upstream", "not part of this version: live plans answer 501, test plans work")


def database(settings: Settings) -> Finding:
    """Reachable, and at which schema version."""
    shown = str(settings.data / "service.db") if settings.embedded else "PostgreSQL"
    try:
        revision = current_revision(settings.store_url)
    except (Refusal, SchemaMismatch, OSError) as error:
        return Finding("database", f"{shown}: {error}", "check SERVICE_DATABASE_URL, the directory's permissions and free space")
    if revision == HEAD:
        return Finding("database", f"{shown}, schema {revision}")
    if revision is None and settings.embedded:
        return Finding("database", f"{shown}: empty, made at the first start")
    return Finding("database", f"{shown}: schema {revision}, this program needs {HEAD}", "reseller db upgrade")


def keyring(settings: Settings) -> Finding:
    """A keyring there must be; without it sealed values cannot be read."""
    if settings.secret_keys.get_secret_value():
        return Finding("keyring", "from SERVICE_SECRET_KEYS")
    path = settings.data / "keyring"
    if settings.embedded and not path.exists():
        return Finding("keyring", "none yet, made at the first start")
    if settings.embedded:
        open_to_others = path.stat().st_mode & 0o077
        return Finding("keyring", str(path), f"chmod 600 {path}" if open_to_others else None)
    return Finding("keyring", "missing", "set SERVICE_SECRET_KEYS to the same value on every replica")


def port(settings: Settings) -> Finding:
    """Free, or held by somebody."""
    with socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.host, settings.port))
        except OSError as error:
            return Finding("port", f"{settings.host}:{settings.port} {error.strerror}", "stop what listens there, or serve with --port 0")
    return Finding("port", f"{settings.host}:{settings.port} is free")
