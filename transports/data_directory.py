"""The directory that keeps all state of the embedded default, and who else may write to it."""

from collections.abc import Callable
from pathlib import Path

from transports.file_access import may_be_entered, writable_by_others
from transports.settings import BadSettings, Settings

FILES = ("service.db", "service.db-wal", "service.db-shm", "keyring")


def make_data_directory(settings: Settings, report: Callable[[str], None] = print) -> None:
    """Make it where it is needed and missing. One that others may write to is refused in production, and told elsewhere.

    Choice: production keeps nothing there, and still does not start beside one that is open: commands with --data read it.
    """
    production = settings.env == "production"
    try:
        if settings.embedded:
            settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = open_to_others(settings.data) if settings.embedded or production else []
    except OSError as error:
        raise BadSettings(
            f"SERVICE_DATA: {settings.data} cannot be made ({error.strerror}); name a directory this user may write"
        ) from None
    if found and production:
        raise BadSettings(f"SERVICE_DATA: {'; '.join(found)}. Whoever writes there changes what is read from it")
    for each in found:
        report(f"{each}; with SERVICE_ENV=production the service does not start so")


def open_to_others(directory: Path) -> list[str]:
    """What others may write there, each with what mends it. Files count where others may enter the directory."""
    if not directory.is_dir():
        return []
    inside = [directory / name for name in FILES] if may_be_entered(directory) else []
    found = (writable_by_others(path) for path in (directory, *inside) if path.exists())
    return [each for each in found if each is not None]
