"""The keyring: read from its setting or from a file that only its owner can read, and held against the database and the other processes."""

import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from registry.ids import Ids
from storage.database_state import is_supported_schema, read_closed, sealed_key_ids
from storage.replicas import ReplicaKeys, running_keys
from storage.sealing import Keyring, new_key_setting, parse_keyring
from transports.settings import ENV_FILE, BadSettings, Settings
from transports.settings_files import read_env_file

KEYRING_SETTING = "SERVICE_SECRET_KEYS"


class KeyringReader:
    """Reads a keyring's file again after it has changed; a keyring that stands in the environment is read once."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._seen = self._state()

    def changed(self) -> str | None:
        """The setting, where the file was written or replaced since it was read last."""
        state = self._state()
        if self._path is None or state is None or state == self._seen:
            return None
        try:
            text = read_env_file(self._path).get(KEYRING_SETTING, "") if self._path.name == ENV_FILE else self._path.read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None  # being replaced: it is looked at again the next time
        self._seen = state
        return text

    def _state(self) -> tuple[int, int, int] | None:
        """What differs after every change; None where there is no file."""
        try:
            found = None if self._path is None else self._path.stat()
        except OSError:
            return None
        return None if found is None else (found.st_ino, found.st_size, found.st_mtime_ns)


def open_keyring(text: str, settings: Settings, ids: Ids, report: Callable[[str], None] = print) -> Keyring:
    """The keyring; a text that is none is a setting to mend."""
    given = settings.secret_keys.get_secret_value()
    reader = KeyringReader(settings.secret_keys_file if given else keyring_path(settings))
    missing: set[str] = set()

    def tell_missing(key_id: str) -> None:
        """Once for each key: a call that needs it may be repeated for a long time."""
        if key_id not in missing:
            missing.add(key_id)
            report(f"a stored value was sealed with key {key_id}, which is not in the keyring: calls that need it answer 503 until it is")

    try:
        return Keyring(text, ids.bytes, read_changed=reader.changed, tell_missing=tell_missing)
    except ValueError as error:  # names positions and key ids, never key material
        raise BadSettings(f"{'SERVICE_SECRET_KEYS' if given else settings.data / 'keyring'}: {error}") from None


def keyring_path(settings: Settings) -> Path | None:
    return settings.data / "keyring" if settings.embedded and not settings.secret_keys.get_secret_value() else None


def keyring_setting(settings: Settings, ids: Ids, report: Callable[[str], None] = print) -> str:
    """The keyring's text; made once for the embedded default."""
    given, path = settings.secret_keys.get_secret_value(), keyring_path(settings)
    if given:
        return given
    if path is None:
        raise BadSettings("SERVICE_SECRET_KEYS: missing; with SERVICE_DATABASE_URL set every replica needs the same keyring")
    try:
        text = read_or_make_keyring(path, ids)
    except OSError as error:
        raise BadSettings(f"{path}: the keyring cannot be read or made ({error.strerror}); it is a file of this user's") from None
    except UnicodeDecodeError:
        raise BadSettings(f"{path}: the keyring is not text; put back the file that was there, or a copy of it") from None
    close_keyring(path, report)
    return text


def others_may_read(path: Path) -> bool:
    """Whether anybody but the owner may do something with the file."""
    return bool(path.stat().st_mode & 0o077)


def close_keyring(path: Path, report: Callable[[str], None]) -> None:
    """A file that others may read is closed to them, and said aloud: somebody may have read it."""
    if not others_may_read(path):
        return
    try:
        path.chmod(0o600)
    except OSError as error:  # a mounted file, or somebody else's
        report(f"{path} can be read by others, and closing it failed ({error.strerror}): chmod 600 {path}")
    else:
        report(f"{path} could be read by others and is closed to them now (mode 600)")


def read_or_make_keyring(path: Path, ids: Ids) -> str:
    """The file's text; written completely or not at all, and never over an existing one."""
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(new_key_setting(ids.bytes) + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(draft, path)
        except FileExistsError:
            pass  # another process was faster: its file stands
        finally:
            draft.unlink()
    return path.read_text().strip()


def checked_keyring(settings: Settings, ids: Ids, report: Callable[[str], None] = print) -> tuple[str, Keyring]:
    """The keyring and its text. None is made, and nothing written, where the database was sealed with another."""
    refuse_lost_keyring(settings)
    text = keyring_setting(settings, ids, report)
    keyring = open_keyring(text, settings, ids, report)
    refuse_unknown_keys(settings, sealed_key_ids(settings.store_url) - parse_keyring(text).keys())
    return text, keyring


def refuse_lost_keyring(settings: Settings) -> None:
    """A keyring file that would have to be made, for a database that was sealed already."""
    path = keyring_path(settings)
    if path is None or path.exists():
        return
    sealed = sealed_key_ids(settings.store_url)
    if not path.exists():  # asked again: another first start may have made it meanwhile, and sealed with it
        refuse_unknown_keys(settings, sealed)


def refuse_key_conflict(keyring: Keyring, running: Sequence[ReplicaKeys], now: float) -> None:
    """A key that seals before all processes know it would leave the others with rows that they cannot open; `now`: Unix seconds."""
    ours = keyring.key_ids
    for process in running:
        if not process.known:
            continue
        named = f"process {process.id} (its lease ends in {math.ceil(process.expires_at - now)} s unless it runs on)"
        if ours[0] not in process.known:
            raise BadSettings(
                f"key {ours[0]} stands first in the keyring, and {named} does not know it: put it behind the others "
                "(SERVICE_SECRET_KEYS, or the file keyring in SERVICE_DATA) and restart every process; when all know it, move it to the "
                "front and restart every process again"
            )
        if process.known[0] not in ours:
            raise BadSettings(
                f"{named} seals with key {process.known[0]}, which is not in the keyring: put that key into it, behind the first, "
                "and take a key out only when `reseller keys rekey` says that it is no longer needed"
            )


def refuse_key_conflict_at(url: str, keyring: Keyring, now: float) -> None:
    """The same for the processes that run on the database at an address."""
    refuse_key_conflict(
        keyring, read_closed(url, lambda connection: running_keys(connection, now=now), fits=is_supported_schema) or (), now
    )


def refuse_unknown_keys(settings: Settings, unknown: Iterable[str]) -> None:
    """Keys that sealed rows and are not there."""
    names = ", ".join(sorted(unknown))
    if names:
        raise BadSettings(
            f"the database was sealed with key {names}, which is not in the keyring: "
            f"put back {settings.data / 'keyring'} (or the key in SERVICE_SECRET_KEYS)"
        )
