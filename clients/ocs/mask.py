"""The token taken out of what the charging system says: members that we do not know pass through to whoever asked."""

import json
from collections.abc import AsyncGenerator, AsyncIterator
from urllib.parse import quote

MASK = b"***"
SHORTEST_SECRET = 12
"""A shorter token may be a number or a word of an answer by chance."""
HTML_IN_JSON = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&='"})


class Mask:
    """Finds one token in each spelling that a server may have for it: plain, inside a JSON string, inside an address."""

    def __init__(self, token: str) -> None:
        plain = json.dumps(token, ensure_ascii=False)[1:-1]
        found = (token, plain, plain.replace("/", "\\/"), plain.translate(HTML_IN_JSON), quote(token, safe="", errors="replace"))
        spellings = dict.fromkeys(text.encode("utf-8", "replace") for text in found)
        self._secrets = tuple(sorted(spellings, key=len, reverse=True)) if len(token.encode("utf-8", "replace")) >= SHORTEST_SECRET else ()

    def whole(self, body: bytes) -> bytes:
        """All of an answer."""
        for secret in self._secrets:
            body = body.replace(secret, MASK)
        return body

    async def parts(self, chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
        """An answer as it comes; what may be the beginning of the token waits for the next part."""
        held = b""
        async for chunk in chunks:
            data = self.whole(held + chunk if held else chunk)
            begun = self._begun(data)
            held = data[len(data) - begun :] if begun else b""
            data = data[: len(data) - begun] if begun else data
            if data:
                yield data
        if held:
            yield held

    def _begun(self, data: bytes) -> int:
        """How many bytes at the end may be the token's beginning."""
        longest = 0
        for secret in self._secrets:
            lengths = range(min(len(secret) - 1, len(data)), longest, -1)
            longest = next((length for length in lengths if data.endswith(secret[:length])), longest)
        return longest
