"""The style sheet and the script of the console: two files whose addresses change with what they hold, so browsers keep them for good."""

import gzip
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from registry.errors import NotFound
from transports.http.compression import takes_gzip
from transports.web.pages.layout import pages_style

ASSETS_FOLDER = Path(__file__).parent / "assets"
ASSET_SECONDS = 31_536_000
ASSET_TYPES: Mapping[str, str] = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


class ConsoleAsset(NamedTuple):
    """A file as it is sent. `name` holds a digest of `content`; `packed` is it gzipped."""

    name: str
    media_type: str
    content: bytes
    packed: bytes


@cache
def console_asset(ending: str) -> ConsoleAsset:
    """The style sheet (`css`), which begins with that of the other pages, or the script (`js`)."""
    text = (ASSETS_FOLDER / f"console.{ending}").read_text()
    content = (pages_style() + text if ending == "css" else text).encode()
    digest = hashlib.sha256(content).hexdigest()[:16]
    return ConsoleAsset(f"{digest}.{ending}", ASSET_TYPES[ending], content, gzip.compress(content, 9, mtime=0))


def asset_response(request: Request, name: str) -> Response:
    """The file with this name. Raises NotFound for a name that no page of this release holds."""
    found = next((asset for asset in map(console_asset, ASSET_TYPES) if asset.name == name), None)
    if found is None:
        raise NotFound("There is no such file", hint="Load the page again: it names the files of this release")
    headers = {
        "cache-control": f"public, max-age={ASSET_SECONDS}, immutable",
        "content-type": found.media_type,
        "vary": "Accept-Encoding",
        "x-content-type-options": "nosniff",
    }
    if takes_gzip(request.scope["headers"]):
        return Response(found.packed, headers={**headers, "content-encoding": "gzip"})
    return Response(found.content, headers=headers)
