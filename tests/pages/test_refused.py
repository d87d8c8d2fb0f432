"""What is refused before a page is asked is a page as well, for people; programs get JSON."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest

from tests.http.asking import ask
from tests.pages.browser import Browser
from tests.pages.document import Document
from tests.pages.site import Site, open_site

READS = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.mark.cases
@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "words"),
    [
        ("POST", "/auth/sign-in", {"Origin": "https://evil.example", **FORM}, 403, "The origin of this page may not call the service."),
        ("POST", "/auth/sign-in", {"Origin": "null", **FORM}, 403, "The origin of this page may not call the service."),
        ("GET", "/auth/account", {"Host": "evil.example"}, 421, "does not serve the host"),
        ("GET", "/auth/account", {"Cookie": "a=" + "x" * 17_000}, 431, "The headers are larger than 16384 bytes in all."),
        ("GET", "/auth/sign-in?next=" + "x" * 9000, {}, 414, "The request target is longer than 8192 bytes."),
        ("POST", "/auth/authorize", {}, 405, "This address takes GET."),
        ("GET", "/auth/authorize?client_id=nobody", {}, 400, "no program of this name is registered here"),
        ("GET", "/auth/authorize?client_id=a&client_id=b", {}, 400, "A parameter was sent twice"),
    ],
)
async def test_a_refusal_of_the_door_is_a_page_for_people_and_json_for_programs(
    browser: Browser, method: str, path: str, headers: Mapping[str, str], status: int, words: str
) -> None:
    shown = await browser.http.request(method, path, headers={**headers, **READS})
    assert shown.status_code == status and words in Document(shown.text).text
    assert shown.headers.get_list("content-type") == ["text/html; charset=utf-8"]
    assert shown.headers.get_list("cache-control") == ["no-store"] and shown.headers.get_list("x-content-type-options") == ["nosniff"]
    assert "frame-ancestors 'none'" in shown.headers["content-security-policy"] and "request-id" in shown.headers
    told = await browser.http.request(method, path, headers=dict(headers))
    assert told.status_code == status and told.headers["content-type"] == "application/json"


async def test_a_strangers_wrong_request_is_told_on_our_page_and_nobody_is_sent_to_the_stranger(browser: Browser) -> None:
    evil = "https://evil.example/auth/sign-in"
    made = await browser.http.post("/auth/register", json={"redirect_uris": [evil], "token_endpoint_auth_method": "none"})
    query = {"response_type": "code", "client_id": made.json()["client_id"], "redirect_uri": evil, "scope": "everything"}
    query |= {"code_challenge": "c" * 43, "code_challenge_method": "S256"}
    shown = await browser.http.get(f"/auth/authorize?{urlencode(query)}", headers=READS)
    assert shown.status_code == 400 and "location" not in shown.headers and "evil.example" not in shown.text
    assert "begin the login again there" in Document(shown.text).text


async def test_too_many_requests_are_told_on_a_page(tmp_path: Path) -> None:
    async with open_site(tmp_path, burst_limit=True) as site, site.browser() as browser:
        answers = [await browser.http.get("/auth/sign-in", headers=READS) for _ in range(61)]
        assert {answer.status_code for answer in answers[:60]} == {200}
        assert answers[60].status_code == 429 and answers[60].headers["retry-after"] == "1"
        assert "Too many at once" in Document(answers[60].text).text


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("https://esim.example:443", "https://esim.example"),
        ("https://ESIM.Example/Shop/", "https://esim.example/Shop"),
        ("http://127.0.0.1:80", "http://127.0.0.1"),
        ("http://[0:0:0:0:0:0:0:1]:8000", "http://[::1]:8000"),
    ],
)
async def test_forms_are_ours_however_the_base_url_is_written(tmp_path: Path, written: str, plain: str) -> None:
    async with open_site(tmp_path, written) as site:
        assert site.service.site.base_url == plain
        origin = "/".join(plain.split("/")[:3])
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=site.app), base_url=origin) as http:
            form = Document((await http.get("/auth/sign-in")).text).form("/auth/sign-in")
            typed = urlencode({**form.fields, "email": "ada@fjord.example"})
            answer = await http.post("/auth/sign-in", content=typed, headers={"Origin": origin, **FORM})
            assert (answer.status_code, answer.headers["location"]) == (303, f"{plain.removeprefix(origin)}/auth/sign-in/code")
            assert (await http.get("/")).headers["location"] == f"{plain.removeprefix(origin)}/docs"


async def test_signing_out_everywhere_ends_session_tokens_too(site: Site, hers: Browser) -> None:
    seen = await hers.send((await hers.get("/auth/session-token")).page.form("/auth/session-token"))
    token = next(word for word in seen.page.words if word.count(".") == 2 and word.startswith("ey"))
    headers = {"Authorization": f"Bearer {token}"}
    assert (await hers.http.get("/v1/onboarding", headers=headers)).status_code == 200
    made = await hers.http.post("/v1/api-keys", json={"name": "stays"}, headers=headers)
    await hers.send((await hers.get("/auth/account")).page.form("/auth/sign-out/everywhere"))
    assert (await hers.http.get("/v1/onboarding", headers=headers)).status_code == 401
    kept = {"Authorization": f"Bearer {made.json()['secret']}"}
    assert (await hers.http.get("/v1/onboarding", headers=kept)).status_code == 200


@pytest.mark.cases
@pytest.mark.parametrize("path", ["/auth/sign-in", "/docs/connectivity", "/.well-known/oauth-protected-resource/mcp", "/health"])
async def test_an_encoded_slash_parts_no_path(site: Site, path: str) -> None:
    assert (await ask(site.app, target=path.encode(), host=b"127.0.0.1")).status == 200
    begin, _, end = path.rpartition("/")
    for other in (f"{begin}%2f{end}", f"{path}%2f", f"/%2F{path[1:]}"):
        assert (await ask(site.app, target=other.encode(), host=b"127.0.0.1")).status == 404, other
