"""Logins of this user at servers elsewhere: kept in a file that only they can read."""

import asyncio
import fcntl
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from registry.clock import Clock
from transports.cli.failure import Failure

MARGIN_SECONDS = 30.0
AGAIN_SECONDS = 0.05


class Login(BaseModel):
    """A login at one server. `expires_at` is the access token's end, Unix seconds."""

    model_config = ConfigDict(frozen=True)

    token_endpoint: str
    revocation_endpoint: str
    client_id: str
    access_token: str
    refresh_token: str
    expires_at: float

    def lasts(self, clock: Clock) -> bool:
        """Whether the access token is good for one more call."""
        return self.expires_at - MARGIN_SECONDS > clock.now()


LOGINS = TypeAdapter(dict[str, Login])


def place() -> Path:
    """Where logins are kept (XDG base directories; a relative one does not count there)."""
    try:
        named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
        return (named if named.is_absolute() else Path.home() / ".config") / "reseller" / "logins.json"
    except RuntimeError:
        raise Failure("there is no home directory to keep logins in; set XDG_CONFIG_HOME, or use --key") from None


def name_of(url: str) -> str:
    """What a server is kept under."""
    return url.rstrip("/")


def read() -> dict[str, Login]:
    """What the file holds; one that is not ours any more is a thing to be told, not to be overwritten."""
    path = place()
    try:
        return LOGINS.validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Failure(f"{path}: cannot be read ({error.strerror}); mend that, or use --key") from None
    except ValidationError:
        raise Failure(f"{path}: holds no logins; remove it and log in again with `reseller login --url URL`") from None


@asynccontextmanager
async def opened() -> AsyncGenerator[dict[str, Login]]:
    """The logins, for one command at a time: a refresh token is good once. What is changed inside is written at the end."""
    path = place()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.parent.chmod(0o700)
        lock = path.with_suffix(".lock").open("a")
    except OSError as error:
        raise Failure(f"{path.parent}: logins cannot be kept there ({error.strerror})") from None
    with lock:
        await alone(lock)
        logins = read()
        before = dict(logins)
        yield logins
        if logins != before:
            write(path, logins)


async def alone(lock: TextIO) -> None:
    """Wait until no other command has the file open, nor another task of this one."""
    while True:
        try:
            return fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            await asyncio.sleep(AGAIN_SECONDS)


def write(path: Path, logins: dict[str, Login]) -> None:
    """Replace the file whole; it is never readable by others, not even for a moment."""
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(LOGINS.dump_json(logins))
    fresh.replace(path)
