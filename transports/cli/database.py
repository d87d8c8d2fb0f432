"""`reseller db`: schema versions, backups."""

import os
from pathlib import Path
from typing import Annotated

import typer

from storage.backup import BackupRefused
from storage.backup import backup as copy_out
from storage.backup import restore as copy_in
from storage.migrate import HEAD, SchemaMismatch
from storage.migrate import upgrade as migrate
from transports.cli.failure import Failure
from transports.cli.render import print_line
from transports.data_directory import make_data_directory
from transports.settings import Settings, load_settings

database_app = typer.Typer(no_args_is_help=True, help="Upgrade, back up and restore the database.")
Data = Annotated[Path | None, typer.Option("--data", help="Directory with the embedded database.")]


def settings_of(data: Path | None) -> Settings:
    """The settings, with the directory made if it is missing."""
    settings = load_settings(os.environ, env_file=Path(".env"), data=data)
    make_data_directory(settings)
    return settings


@database_app.command("upgrade")
def upgrade(data: Data = None) -> None:
    """Bring the database to this program's schema version; several at once are safe."""
    settings = settings_of(data)
    try:
        done = migrate(settings.store_url)
    except SchemaMismatch as wrong:
        raise Failure(str(wrong), exit_code=3) from None
    print_line(f"upgraded to {HEAD}" if done else f"already at {HEAD}")


@database_app.command("backup")
def backup(file: Annotated[Path, typer.Argument(help="New file to write.")], data: Data = None) -> None:
    """Copy the database into a new file, also while the service runs. It holds personal data and sealed secrets."""
    try:
        copy_out(settings_of(data).store_url, file)
    except BackupRefused as refused:
        raise Failure(str(refused)) from None
    print_line(f"backed up to {file}; keep the keyring with it, without it the sealed values cannot be read")


@database_app.command("restore")
def restore(file: Annotated[Path, typer.Argument(help="Backup to read.")], data: Data = None) -> None:
    """Replace the database by a backup. Stop the service first."""
    try:
        kept = copy_in(file, settings_of(data).store_url)
    except BackupRefused as refused:
        raise Failure(str(refused)) from None
    print_line(f"restored from {file}" + (f"; what was there before is in {kept}" if kept else ""))
