"""The files that settings and state lie in: reads the settings, makes the data directory, and finds files that others may write."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from transports.settings import SETTING_PREFIX, BadSettings, Settings, UnknownSetting


def read_env_file(path: Path) -> dict[str, str]:
    """NAME=value lines; quotes around a value are dropped, # begins a comment line."""
    values: dict[str, str] = {}
    for line in path.read_text().splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            values[name.strip().removeprefix("export ")] = value.strip().strip("\"'")
    return values


def load_settings(environment: Mapping[str, str], *, env_file: Path | None = None, **overrides: object) -> Settings:
    """Files first, then the environment, then what the command line said."""
    merged: dict[str, str] = {}
    if env_file is not None and env_file.is_file():
        merged.update(read_env_file(env_file))
    directory = environment.get("SERVICE_SECRETS_DIR")
    if directory:
        try:
            merged.update({path.name.upper(): path.read_text().strip() for path in Path(directory).iterdir() if path.is_file()})
        except (OSError, UnicodeDecodeError) as error:
            raise BadSettings(
                f"SERVICE_SECRETS_DIR: {directory} cannot be read ({getattr(error, 'strerror', None) or 'not text'})"
            ) from None
    merged.update(environment)
    known = set(Settings.model_fields)
    named = {name[len(SETTING_PREFIX) :].lower(): value for name, value in merged.items() if name.startswith(SETTING_PREFIX)}
    named.pop("secrets_dir", None)
    unknown = sorted(set(named) - known)
    if unknown:
        raise UnknownSetting(SETTING_PREFIX + unknown[0].upper())
    values = {name: value for name, value in named.items() if value != ""}
    values.update({name: value for name, value in overrides.items() if value is not None})  # pyright: ignore[reportCallIssue, reportArgumentType]  # overrides are typed values, not texts
    try:
        settings = Settings.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = SETTING_PREFIX + str(first["loc"][0]).upper() if first["loc"] else ""
        raise BadSettings(f"{name}: {first['msg'].removeprefix('Value error, ')}".removeprefix(": ")) from None
    settings.note_secret_keys_file(
        None if "SERVICE_SECRET_KEYS" in environment else file_of_setting("SERVICE_SECRET_KEYS", env_file, directory)
    )
    if settings.env == "production":
        refuse_open_files([] if env_file is None else [env_file], directory)
    return settings


def file_of_setting(name: str, env_file: Path | None, directory: str | None) -> Path | None:
    """The file that a setting is read from where the environment does not have it; the secrets directory comes before .env."""
    secrets = [path for path in Path(directory).iterdir() if path.is_file() and path.name.upper() == name] if directory else []
    if secrets:
        return secrets[-1]
    return env_file if env_file is not None and env_file.is_file() and name in read_env_file(env_file) else None


def refuse_open_files(files: Sequence[Path], directory: str | None) -> None:
    """Refuses settings files that others may write, in production: they could set its keys."""
    secrets = [] if not directory else [Path(directory), *(path for path in Path(directory).iterdir() if path.is_file())]
    found = [writable_by_others(path, whoever_owns=True) for path in (*files, *secrets) if path.exists()]
    wrong = [each for each in found if each is not None]
    if wrong:
        raise BadSettings(f"{'; '.join(wrong)}. Production reads settings and keys from there")


OTHERS_WRITE, OTHERS_ENTER = 0o022, 0o011
ROOT_USER = 0


def writable_by_others(path: Path, *, whoever_owns: bool = False) -> str | None:
    """What is wrong and what mends it, or nothing. Root may do anything anyway; on a read-only file system nobody writes.

    `whoever_owns`: another owner is no fault, as of files that somebody else hands over.
    """
    if os.name != "posix" or os.statvfs(path).f_flag & os.ST_RDONLY:
        return None
    found, user = path.stat(), os.geteuid()
    if not whoever_owns and found.st_uid not in (user, ROOT_USER):
        return f"{path} belongs to another user (uid {found.st_uid}, this is uid {user}): chown {user} {path}"
    if found.st_mode & OTHERS_WRITE:
        return f"{path} can be written by others (mode {found.st_mode & 0o777:o}): chmod go-w {path}"
    return None


DATA_FILES = ("service.db", "service.db-wal", "service.db-shm", "keyring")


def make_data_directory(settings: Settings, report: Callable[[str], None] = print) -> None:
    """Make it where it is needed and missing. One that others may write to is refused in production, and told elsewhere.

    Choice: production keeps nothing there, and still does not start beside one that is open: commands with --data read it.
    """
    production = settings.env == "production"
    try:
        if settings.embedded:
            settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = files_open_to_others(settings.data) if settings.embedded or production else []
    except OSError as error:
        raise BadSettings(
            f"SERVICE_DATA: {settings.data} cannot be made ({error.strerror}); name a directory this user may write"
        ) from None
    if found and production:
        raise BadSettings(f"SERVICE_DATA: {'; '.join(found)}. Whoever writes there changes what is read from it")
    for each in found:
        report(f"{each}; with SERVICE_ENV=production the service does not start so")


def files_open_to_others(directory: Path) -> list[str]:
    """What others may write there, each with what mends it. Files count where others may enter the directory."""
    if not directory.is_dir():
        return []
    inside = [directory / name for name in DATA_FILES] if directory.stat().st_mode & OTHERS_ENTER else []
    found = (writable_by_others(path) for path in (directory, *inside) if path.exists())
    return [each for each in found if each is not None]
