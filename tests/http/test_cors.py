"""Cross-origin calls: pages of the listed origins may call the API and MCP and read the answers; no other page, and never with a cookie."""

from collections.abc import AsyncGenerator
from pathlib import Path

import httpx
import pytest
from inline_snapshot import snapshot

from tests.pages.site import Site, open_site
from transports.http.cors import CORS_ANSWER_HEADERS, CORS_REQUEST_HEADERS
from transports.openapi.document import RESPONSE_HEADERS
from transports.settings import BadSettings
from transports.settings_files import load_settings

LISTED, OTHER, UNLISTED = "https://app.example", "http://localhost:5173", "https://evil.example"
PROGRAMS = (
    "/health",
    "/v1/connectivity/plans",
    "/v1/nothing/here",
    "/openapi.json",
    "/asyncapi.json",
    "/mcp",
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-authorization-server/auth",
    "/auth/register",
    "/auth/token",
    "/auth/revoke",
    "/auth/jwks",
)
PEOPLE = ("/", "/docs", "/auth/sign-in", "/auth/authorize", "/auth/account", "/shop/none", "/llms.txt", "/sandbox/payments/none")


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Site]:
    async with open_site(tmp_path_factory.mktemp("cors"), origins=f"{LISTED},{OTHER}") as site:
        yield site


@pytest.fixture(scope="module")
async def http(site: Site) -> AsyncGenerator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=site.app), base_url=site.base_url) as http:
        yield http


def cors(answer: httpx.Response) -> dict[str, str]:
    """The headers that browsers read for pages of other origins."""
    return {name: value for name, value in answer.headers.items() if name.startswith("access-control-")}


def asking(origin: str, method: str = "POST", names: str = "authorization,content-type") -> dict[str, str]:
    return {"Origin": origin, "Access-Control-Request-Method": method, "Access-Control-Request-Headers": names}


async def test_a_preflight_of_a_listed_origin_is_told_what_may_be_sent(http: httpx.AsyncClient) -> None:
    answer = await http.options("/v1/connectivity/intents", headers=asking(LISTED))
    assert (answer.status_code, answer.content, answer.headers.pop("request-id")[:4]) == (204, b"", "req_")
    assert dict(answer.headers) == snapshot(
        {
            "access-control-allow-origin": "https://app.example",
            "access-control-allow-methods": "GET, HEAD, POST, PUT, PATCH, DELETE",
            "access-control-allow-headers": ", ".join(CORS_REQUEST_HEADERS),
            "access-control-max-age": "600",
            "vary": "Origin",
        }
    )


@pytest.mark.cases
@pytest.mark.parametrize("path", PROGRAMS)
@pytest.mark.parametrize("origin", [LISTED, OTHER])
async def test_pages_of_listed_origins_read_every_answer_for_programs(http: httpx.AsyncClient, path: str, origin: str) -> None:
    assert (await http.options(path, headers=asking(origin))).headers["access-control-allow-origin"] == origin
    for method in ("GET", "POST", "TRACE"):
        answer = await http.request(method, path, headers={"Origin": origin})
        assert cors(answer) == {"access-control-allow-origin": origin, "access-control-expose-headers": ", ".join(CORS_ANSWER_HEADERS)}
        assert answer.headers.get_list("vary").count("Origin") == 1


@pytest.mark.cases
@pytest.mark.parametrize("path", PROGRAMS)
@pytest.mark.parametrize("origin", [UNLISTED, "null", f"{LISTED}.evil.example", LISTED.upper(), f"{LISTED}/", f"{LISTED}:443", "*", ""])
async def test_pages_of_other_origins_are_refused_and_read_nothing(http: httpx.AsyncClient, path: str, origin: str) -> None:
    for answer in (await http.options(path, headers=asking(origin)), await http.get(path, headers={"Origin": origin})):
        assert (answer.status_code, answer.json()["code"], cors(answer)) == (403, "origin_not_allowed", {})
        assert answer.headers["vary"] == "Origin"


@pytest.mark.parametrize("path", PROGRAMS)
async def test_a_cache_is_told_that_answers_differ_by_origin_also_where_none_came(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    assert answer.headers.get_list("vary").count("Origin") == 1 and cors(answer) == {}


@pytest.mark.cases
@pytest.mark.parametrize("path", PEOPLE)
@pytest.mark.parametrize("origin", [LISTED, UNLISTED])
async def test_no_page_of_another_origin_reads_our_pages(http: httpx.AsyncClient, path: str, origin: str) -> None:
    for answer in (await http.options(path, headers=asking(origin)), await http.get(path, headers={"Origin": origin})):
        assert cors(answer) == {} and answer.status_code != 204


async def test_a_report_as_a_page_is_not_for_other_pages(http: httpx.AsyncClient) -> None:
    told = await http.get("/v1/intelligence/share/none", headers={"Origin": LISTED})
    assert (told.headers["content-type"], "access-control-allow-origin" in told.headers) == ("application/json", True)
    page = await http.get("/v1/intelligence/share/none", headers={"Origin": LISTED, "Accept": "text/html"})
    assert (page.headers["content-type"].partition(";")[0], cors(page), page.headers["vary"]) == ("text/html", {}, "Accept, Origin")


async def test_the_headers_of_a_tool_s_arguments_may_be_sent_and_no_other_is_repeated(http: httpx.AsyncClient) -> None:
    names = "authorization,mcp-param-iccid, Mcp-Param-Line_2,cookie,x-evil,mcp-param-\xe9,mcp-param-" + "x" * 65
    answer = await http.options(
        "/mcp", headers=[(name.encode(), value.encode("latin-1")) for name, value in asking(LISTED, "POST", names).items()]
    )
    allowed = answer.headers["access-control-allow-headers"].split(", ")
    assert allowed[-2:] == ["mcp-param-iccid", "Mcp-Param-Line_2"]
    assert not {"cookie", "x-evil"} & {name.lower() for name in allowed}


async def test_two_origins_in_one_request_are_none(http: httpx.AsyncClient) -> None:
    answer = await http.get("/health", headers=[("Origin", LISTED), ("Origin", LISTED)])
    assert (answer.status_code, cors(answer)) == (400, {})


@pytest.mark.parametrize("path", ["/v1/connectivity/plans", "/mcp", "/auth/token", "/openapi.json", "/asyncapi.json"])
async def test_no_answer_ever_allows_credentials(http: httpx.AsyncClient, path: str) -> None:
    for answer in (await http.options(path, headers=asking(LISTED)), await http.get(path, headers={"Origin": LISTED, "Cookie": "s=1"})):
        assert "access-control-allow-credentials" not in answer.headers


async def test_options_that_no_browser_asked_is_answered_as_before(http: httpx.AsyncClient) -> None:
    for headers in ({}, {"Origin": LISTED}, {"Access-Control-Request-Method": "POST"}):
        answer = await http.options("/v1/connectivity/intents", headers=headers)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD, POST")


async def test_a_preflight_costs_nothing_and_asks_for_no_credential(site: Site, http: httpx.AsyncClient) -> None:
    for _ in range(200):
        assert (await http.options("/v1/connectivity/intents", headers=asking(LISTED))).status_code == 204


async def test_a_refused_credential_tells_a_page_where_to_log_in(http: httpx.AsyncClient) -> None:
    answer = await http.post("/mcp", json={}, headers={"Origin": LISTED})
    assert answer.status_code == 401 and "resource_metadata=" in answer.headers["www-authenticate"]
    assert "WWW-Authenticate" in answer.headers["access-control-expose-headers"].split(", ")


async def test_a_page_registers_a_program_and_is_told_what_is_wrong_with_its_code(http: httpx.AsyncClient) -> None:
    sent = {"Origin": LISTED}
    asked = {"redirect_uris": [f"{LISTED}/callback"], "token_endpoint_auth_method": "none", "client_name": "A page"}
    made = await http.post("/auth/register", json=asked, headers=sent)
    assert (made.status_code, made.headers["access-control-allow-origin"]) == (201, LISTED)
    given = {"grant_type": "authorization_code", "client_id": made.json()["client_id"], "code": "none", "code_verifier": "v" * 43}
    refused = await http.post("/auth/token", data=given, headers=sent)
    assert (refused.status_code, refused.json()["error"], refused.headers["access-control-allow-origin"]) == (400, "invalid_grant", LISTED)


async def test_without_a_list_nothing_is_said_of_origins(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, httpx.AsyncClient(transport=httpx.ASGITransport(app=site.app), base_url=site.base_url) as http:
        for path in ("/health", "/v1/nothing/here", "/mcp", "/.well-known/oauth-protected-resource/mcp"):
            answer = await http.get(path)
            assert cors(answer) == {} and "Origin" not in answer.headers.get("vary", "")
        assert (await http.options("/v1/connectivity/intents", headers=asking(site.base_url))).status_code == 405


@pytest.mark.parametrize(
    "origin", ["*", "null", "https://*.example", "https://app.example/", "https://App.example", "app.example", "//app.example"]
)
@pytest.mark.parametrize("before", ["", "https://app.example,"])
async def test_the_service_does_not_start_with_what_no_browser_sends(origin: str, before: str) -> None:
    with pytest.raises(BadSettings, match="SERVICE_ALLOWED_ORIGINS must be origins as browsers send them") as refused:
        load_settings({"SERVICE_ALLOWED_ORIGINS": before + origin})
    assert f"entry {2 if before else 1} is none" in str(refused.value)


@pytest.mark.parametrize(
    "origin", ["https://app.example:443", "http://app.example:80", "https://user:secret@app.example", "https://é.example"]
)
async def test_no_port_of_the_scheme_and_no_password_is_part_of_an_origin(origin: str) -> None:
    with pytest.raises(BadSettings) as refused:
        load_settings({"SERVICE_ALLOWED_ORIGINS": origin})
    assert origin not in str(refused.value) and "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "origin", ["http://localhost:5173", "http://[::1]:3000", "https://a.b-c.example:8443", "vscode-webview://abc", "https://app.example:80"]
)
async def test_origins_as_browsers_send_them_are_taken(origin: str) -> None:
    assert load_settings({"SERVICE_ALLOWED_ORIGINS": origin}).allowed_origins == (origin,)


def test_a_page_may_read_every_header_that_the_document_names() -> None:
    assert set(RESPONSE_HEADERS) <= set(CORS_ANSWER_HEADERS)
