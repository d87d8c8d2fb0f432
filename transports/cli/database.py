"""`reseller db`: schema versions, backups."""

import asyncio
import math
from pathlib import Path
from typing import Annotated

import typer

from registry.clock import SystemClock
from storage.engine.backup import BackupRefused
from storage.engine.backup import backup as copy_out
from storage.engine.backup import restore as copy_in
from storage.engine.migrate import current_revision
from storage.engine.migrate import upgrade_database as migrate
from storage.engine.revision import HEAD
from storage.engine.store import open_store
from storage.replicas import last_lease_end
from transports.cli.target import DatabaseOption
from transports.cli.terminal import Failure, command_settings, print_line, to_stderr
from transports.settings import Settings
from transports.settings_files import make_data_directory

database_app = typer.Typer(no_args_is_help=True, help="Upgrade, back up and restore the database.")


def database_settings(data: Path | None) -> Settings:
    """The settings; makes the directory if it is missing."""
    settings = command_settings(data=data)
    make_data_directory(settings, to_stderr)
    return settings


@database_app.command("upgrade")
def upgrade_database(data: DatabaseOption = None) -> None:
    """Bring the database to this program's schema version; several at once are safe."""
    settings = database_settings(data)
    done = migrate(settings.store_url)
    print_line(f"upgraded to {HEAD}" if done else f"already at {current_revision(settings.store_url)}")


@database_app.command("backup")
def backup_database(file: Annotated[Path, typer.Argument(help="New file to write.")], data: DatabaseOption = None) -> None:
    """Copy the database into a new file, also while the service runs. It holds personal data and sealed secrets."""
    try:
        copy_out(database_settings(data).store_url, file)
    except BackupRefused as refused:
        raise Failure(str(refused)) from None
    print_line(f"backed up to {file}; keep the keyring with it, without it the sealed values cannot be read")


@database_app.command("restore")
def restore_database(file: Annotated[Path, typer.Argument(help="Backup to read.")], data: DatabaseOption = None) -> None:
    """Replace the database by a backup. Refused while the service runs on it."""
    settings = database_settings(data)
    refuse_in_use(settings)
    try:
        previous = copy_in(file, settings.store_url)
    except BackupRefused as refused:
        raise Failure(str(refused)) from None
    print_line(f"restored from {file}" + (f"; what was there before is in {previous}" if previous else ""))


def refuse_in_use(settings: Settings) -> None:
    """Raises Failure while a process serves, since it would answer from the replaced database."""
    if not settings.embedded or not (settings.data / "service.db").exists() or current_revision(settings.store_url) is None:
        return
    left = asyncio.run(lease_left(settings.store_url))
    if left > 0:
        raise Failure(f"the service runs on this database: stop it first (after a crash, wait {math.ceil(left)} s)", exit_code=1)


async def lease_left(url: str) -> float:
    """Seconds until no process can be using the database."""
    store = open_store(url)
    try:
        return await store.read(last_lease_end) - SystemClock().now()
    finally:
        await store.aclose()
