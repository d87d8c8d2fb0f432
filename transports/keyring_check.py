"""The keyring and the database belong together: a start with another keyring would answer faults, and seal with a key of its own."""

from collections.abc import Callable, Iterable

from registry.ids import Ids
from storage.secrets.sealed_rows import sealed_key_ids
from storage.secrets.sealing import Keyring, parse
from transports.keyring_file import keyring_path, keyring_setting, open_keyring
from transports.settings import BadSettings, Settings


def checked_keyring(settings: Settings, ids: Ids, report: Callable[[str], None] = print) -> tuple[str, Keyring]:
    """The keyring and its text. None is made, and nothing written, where the database was sealed with another."""
    refuse_lost(settings)
    text = keyring_setting(settings, ids, report)
    keyring = open_keyring(text, settings, ids)
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


def refuse_foreign(settings: Settings, unknown: Iterable[str]) -> None:
    """Keys that sealed rows and are not there."""
    names = ", ".join(sorted(unknown))
    if names:
        raise BadSettings(
            f"the database was sealed with key {names}, which is not in the keyring: "
            f"put back {settings.data / 'keyring'} (or the key in SERVICE_SECRET_KEYS)"
        )
