"""Asking composites over HTTP: answers whole, page by page, and how much of a model's attention one takes."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

CHARACTERS_PER_TOKEN = 4
Answer = Mapping[str, Any]


class Asker:
    """A client of the service."""

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    async def whole(self, path: str, body: Mapping[str, object]) -> Answer:
        """One answer."""
        return (await self._post(path, body)).json()

    async def tokens(self, path: str, body: Mapping[str, object]) -> int:
        """The size of an answer."""
        return len((await self._post(path, body)).content) // CHARACTERS_PER_TOKEN

    async def rows(self, path: str, member: str, body: Mapping[str, object]) -> list[Answer]:
        """The rows of all pages."""
        found: list[Answer] = []
        cursor: str | None = None
        while True:
            answer = await self._post(path, {**body, "starting_after": cursor} if cursor else body)
            found += answer.json()["data"][member]
            cursor = cursor_in(answer.headers.get("link", ""))
            if cursor is None:
                return found

    async def _post(self, path: str, body: Mapping[str, object]) -> httpx.Response:
        answer = await self._http.post(f"/v1/intelligence/{path}", json=dict(body))
        if answer.status_code != 200:
            raise AssertionError(f"{path} {body}: {answer.status_code} {answer.text[:500]}")
        return answer


def cursor_in(link: str) -> str | None:
    """Where the next page begins, by the Link header."""
    if 'rel="next"' not in link:
        return None
    query = parse_qs(urlsplit(link[link.index("<") + 1 : link.index(">")]).query)
    return query["starting_after"][0]
