"""GET /openapi.json; GET /asyncapi.json is served by the same words."""

import hashlib
from collections.abc import AsyncIterator

import httpx
import pytest

from operations.catalogue import CATALOGUE
from tests.openapi.lamps import LAMPS, document
from tests.openapi.written import COMMITTED_SITE
from transports.openapi.asyncapi import AsyncapiPage, build_asyncapi
from transports.openapi.page import OpenapiPage


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(OpenapiPage(LAMPS, COMMITTED_SITE))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        yield client


async def test_anybody_reads_the_document(client: httpx.AsyncClient) -> None:
    answer = await client.get("/openapi.json", headers={"Accept-Encoding": "identity"})
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert answer.headers["etag"] == f'"{hashlib.sha256(answer.content).hexdigest()}"'
    assert answer.json() == document()


@pytest.mark.parametrize("form", ["{tag}", "W/{tag}", '"other", {tag}', "*"])
async def test_who_has_the_document_already_gets_304_without_a_body(client: httpx.AsyncClient, form: str) -> None:
    tag = (await client.get("/openapi.json")).headers["etag"]
    answer = await client.get("/openapi.json", headers={"If-None-Match": form.format(tag=tag)})
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)


async def test_who_has_another_document_gets_this_one(client: httpx.AsyncClient) -> None:
    assert (await client.get("/openapi.json", headers={"If-None-Match": '"other"'})).status_code == 200


async def test_head_answers_with_the_headers_alone(client: httpx.AsyncClient) -> None:
    whole, head = await client.get("/openapi.json"), await client.head("/openapi.json")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers == whole.headers


async def test_anybody_reads_the_document_of_events() -> None:
    transport = httpx.ASGITransport(AsyncapiPage(CATALOGUE, COMMITTED_SITE))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.get("/asyncapi.json")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
        assert answer.json() == build_asyncapi(CATALOGUE, COMMITTED_SITE)
        assert (await client.get("/asyncapi.json", headers={"If-None-Match": answer.headers["etag"]})).status_code == 304


async def test_the_document_is_only_read(client: httpx.AsyncClient) -> None:
    answer = await client.post("/openapi.json")
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert answer.json()["code"] == "method_not_allowed"
