"""How far an import has come, kept in a small file, so that a killed one goes on where it was.

Nothing depends on it: without it the records are sent again, and each of them counts once.
"""

import base64
import binascii
import hashlib
import os
from pathlib import Path
from typing import Annotated, cast

import orjson
from pydantic import BaseModel, Field, ValidationError

from registry.clock import SystemClock
from transports.cli.cdr_file import CdrFile
from transports.cli.credentials import place
from transports.cli.door import Where
from transports.cli.stored_login import stored_token
from transports.settings import load_settings

FIRST_BLOCK = 64 * 1024

Count = Annotated[int, Field(ge=0)]


class Progress(BaseModel):
    """What was acknowledged so far: the offset behind it, its last line, and the counts."""

    offset: Count = 0
    line: Count = 0
    stored: Count = 0
    skipped: Count = 0
    bad: Count = 0

    @property
    def records(self) -> int:
        """Lines that are a record or should have been one: neither the header nor empty ones."""
        return self.stored + self.skipped + self.bad


class Kept:
    """The file that the progress of one import is kept in."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.works = True

    def read(self) -> Progress:
        """Where the import was; the beginning when nobody knows."""
        try:
            return Progress.model_validate_json(self._path.read_bytes())
        except (OSError, ValidationError):
            return Progress()

    def write(self, progress: Progress) -> None:
        """Replace it whole; where it cannot be written the import goes on without."""
        fresh = self._path.with_suffix(f".{os.getpid()}")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            fresh.write_bytes(progress.model_dump_json().encode())
            fresh.replace(self._path)
        except OSError:
            self.works = False

    def forget(self) -> None:
        """The import is over."""
        try:
            self._path.unlink(missing_ok=True)
        except OSError:
            self.works = False


async def kept_for(where: Where, file: CdrFile) -> Kept:
    """One for each file, as it is now, and each organisation it is imported for: in the data directory, or beside the logins."""
    folder = place().parent if where.url else load_settings(os.environ, env_file=Path(".env"), data=where.data).data
    seen = file.path.stat()
    with file.path.open("rb") as opened:
        block = hashlib.sha256(opened.read(FIRST_BLOCK)).hexdigest()
    whom = (where.url.rstrip("/"), where.key or await organisation_of_login(where.url)) if where.url else (where.org or "",)
    identity = [str(file.path.resolve()), seen.st_size, seen.st_mtime_ns, block, file.format, file.packed, *whom]
    return Kept(folder / "imports" / f"{hashlib.sha256(orjson.dumps(identity)).hexdigest()[:32]}.json")


async def organisation_of_login(url: str) -> str:
    """Whom the stored login acts for; its token says so, and whether it may is the server's to decide."""
    token = await stored_token(url, SystemClock()) or ""
    claims = token.split(".")[1] if token.count(".") == 2 else ""
    try:
        said = cast("dict[str, object]", orjson.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))))
        return str(said.get("org_id") or said["sub"])
    except (binascii.Error, ValueError, LookupError, AttributeError):
        return token
