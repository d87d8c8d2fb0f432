"""The keyring and the database belong together: a start with another keyring would answer faults, and seal with a key of its own."""

import math
from collections.abc import Callable, Iterable, Sequence

from registry.ids import Ids
from storage.calls.replicas import ReplicaKeys, running_keys
from storage.secrets.sealed_rows import read_closed, sealed_key_ids, spoken
from storage.secrets.sealing import Keyring, parse
from transports.keyring_file import keyring_path, keyring_setting, open_keyring
from transports.settings import BadSettings, Settings


def checked_keyring(settings: Settings, ids: Ids, report: Callable[[str], None] = print) -> tuple[str, Keyring]:
    """The keyring and its text. None is made, and nothing written, where the database was sealed with another."""
    refuse_lost(settings)
    text = keyring_setting(settings, ids, report)
    keyring = open_keyring(text, settings, ids, report)
    refuse_foreign(settings, sealed_key_ids(settings.store_url) - parse(text).keys())
    return text, keyring


def refuse_lost(settings: Settings) -> None:
    """A keyring file that would have to be made, for a database that was sealed already."""
    path = keyring_path(settings)
    if path is None or path.exists():
        return
    sealed = sealed_key_ids(settings.store_url)
    if not path.exists():  # asked again: another first start may have made it meanwhile, and sealed with it
        refuse_foreign(settings, sealed)


def refuse_conflict(keyring: Keyring, running: Sequence[ReplicaKeys], now: float) -> None:
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


def refuse_conflict_at(url: str, keyring: Keyring, now: float) -> None:
    """The same for the processes that run on the database at an address."""
    refuse_conflict(keyring, read_closed(url, lambda connection: running_keys(connection, now=now), fits=spoken) or (), now)


def refuse_foreign(settings: Settings, unknown: Iterable[str]) -> None:
    """Keys that sealed rows and are not there."""
    names = ", ".join(sorted(unknown))
    if names:
        raise BadSettings(
            f"the database was sealed with key {names}, which is not in the keyring: "
            f"put back {settings.data / 'keyring'} (or the key in SERVICE_SECRET_KEYS)"
        )
