"""What holds for all pages: headers, no script, nothing from elsewhere, words for screen readers, and texts that stay texts."""

import re

import pytest

from operations.people.browser_sessions import BrowserSession
from storage.access_grants import AccessGrant, insert_grant
from tests.pages.asking import consent_token
from tests.pages.browser import Browser, Seen
from tests.pages.closed_page import check_closed_page
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site
from transports.web.pages.app import PAGE_ROUTES

HOSTILE_MARKUP = "<img src=x onerror=alert(1)>\"'&amp;{{7*7}}</title></style><script>alert(2)</script>"
SHOWN = [path for path, route in PAGE_ROUTES.items() if route.show]


async def every(site: Site, browser: Browser) -> dict[str, Seen]:
    """Each page that can be shown now, and those that only an answer shows."""
    token = await consent_token(site)
    seen = {path: await browser.get(f"/auth{path}" + (f"?request={token}" if path == "/consent" else "")) for path in SHOWN}
    seen["no page"] = await browser.get("/auth/no-such-page")
    seen["no way"] = Seen(await browser.http.put("/auth/account"), [])
    seen["no form"] = await browser.post("/auth/sign-in", {"csrf": "x"})
    begun = await browser.get("/auth/sign-up")
    fields = {"email": "new@fjord.example", "organization_name": "New"}
    seen["code"] = await browser.send(begun.page.form("/auth/sign-up"), **fields)
    seen["no code"] = await browser.send(seen["code"].page.form("/auth/sign-up/code"), code="1")
    return seen


def check_page(name: str, seen: Seen, *, posts_to: str = "") -> None:
    """Everything that a page must be."""
    check_closed_page(name, seen, posts_to=posts_to)
    page = seen.page
    assert "img" not in {tag.name for tag in page.tags}, name
    assert next(tag for tag in page.tags if tag.name == "html").attributes["lang"] == "en"
    assert re.search(r"<title>(Problem: )?\S[^<]* · Connectivity</title>", page.html), name
    for tag in page.tags:
        assert not tag.attributes.get("href", "").lower().startswith(("javascript:", "data:", "//")), (name, tag)
        assert "src" not in tag.attributes, (name, tag)
    for form in page.forms:
        assert form.action.startswith("/auth/"), name
        assert form.method == "get" or form.fields["csrf"], name


async def test_every_page_is_closed_and_readable_for_a_stranger(site: Site, browser: Browser) -> None:
    for name, seen in (await every(site, browser)).items():
        check_page(name, seen)


async def test_every_page_is_closed_and_readable_for_somebody_signed_in(site: Site, hers: Browser) -> None:
    for name, seen in (await every(site, hers)).items():
        check_page(name, seen, posts_to=" https://app.example:8443" if name == "/consent" else "")
        assert ADA_ADDRESS in seen.page.text


async def test_every_page_is_closed_and_readable_for_somebody_without_an_organisation(site: Site, browser: Browser) -> None:
    await site.person("alone@fjord.example")
    await site.sign_in(browser, "alone@fjord.example")
    for name, seen in (await every(site, browser)).items():
        check_page(name, seen, posts_to=" https://app.example:8443" if name == "/consent" else "")
        assert seen.status < 500


async def test_hostile_names_stay_texts_on_every_page(site: Site, browser: Browser) -> None:
    person = await site.person("evil@fjord.example", name=HOSTILE_MARKUP)
    organisation = await site.organisation(person, HOSTILE_MARKUP)
    await site.organisation(person, HOSTILE_MARKUP)
    now = site.clock.now()
    grant = AccessGrant("gnt_1", person, organisation, HOSTILE_MARKUP, HOSTILE_MARKUP, "read", "x", now, now + 1e6)
    await site.service.store.write(insert_grant, grant)
    await site.sign_in(browser, "evil@fjord.example")
    page = (await browser.get("/auth/api-keys")).page
    made = await browser.send(page.form("/auth/api-keys", "create"), name="<b>bold</b>")
    token = await consent_token(site, name=HOSTILE_MARKUP, client=HOSTILE_MARKUP)
    pages = {**await every(site, browser), "made": made}
    pages["asked"] = await browser.get(f"/auth/consent?request={token}")
    pages["audit"] = await browser.get(f"/auth/audit?outcome={'%3Cscript%3E' * 2}")
    pages["ref"] = await browser.get("/auth/sign-up?ref=%22%3E%3Cscript%3E")
    for name, seen in pages.items():
        check_page(name, seen, posts_to=" https://app.example:8443" if name in ("/consent", "asked") else "")
        assert "<img" not in seen.answer.text and "<script" not in seen.answer.text and "<b>" not in seen.answer.text
    assert HOSTILE_MARKUP in pages["/account"].page.text


async def test_a_head_request_gets_the_headers_alone(site: Site, hers: Browser) -> None:
    token = await consent_token(site)
    for path in SHOWN:
        address = f"/auth{path}?request={token}" if path == "/consent" else f"/auth{path}"
        got, head = await hers.http.get(address), await hers.http.head(address)
        assert (head.status_code, head.content) == (got.status_code, b""), path
        if path != "/audit":  # where each look at the log is in the log
            assert head.headers["content-length"] == got.headers["content-length"]
        for name in ("content-type", "content-security-policy", "location"):
            assert head.headers.get(name) == got.headers.get(name), path


@pytest.mark.cases
@pytest.mark.parametrize(
    ("method", "path", "status", "allow"),
    [
        ("GET", "/auth/sign-out", 405, "POST"),
        ("GET", "/auth/sign-out/everywhere", 405, "POST"),
        ("POST", "/auth", 405, "GET, HEAD"),
        ("POST", "/auth/upgrade", 405, "GET, HEAD"),
        ("PUT", "/auth/account", 405, "GET, HEAD, POST"),
        ("OPTIONS", "/auth/sign-in", 405, "GET, HEAD, POST"),
        ("DELETE", "/auth/sign-in", 405, "GET, HEAD, POST"),
        ("GET", "/auth/nowhere", 404, None),
        ("POST", "/auth/nowhere", 404, None),
        ("GET", "/auth/account/..%2Fapi-keys", 404, None),
        ("GET", "/auth/account%2Fx", 404, None),
        ("GET", "/auth/sign-in?next=%ff", 400, None),
        ("GET", "/auth/sign-in?next=a&next=b", 400, None),
    ],
)
async def test_what_no_page_answers_is_a_page_too(browser: Browser, method: str, path: str, status: int, allow: str | None) -> None:
    answer = await browser.http.request(method, path, headers={"Origin": browser.origin})
    assert (answer.status_code, answer.headers.get("allow")) == (status, allow)
    check_page(path, Seen(answer, []))


def test_what_a_session_says_of_a_person_has_no_place_for_more() -> None:
    """Pages show what is in here; an API key, a code or a token is not."""
    assert BrowserSession._fields == ("id", "person", "organisation", "created", "address", "name", "cookie")


async def test_the_cookie_is_on_no_page(site: Site, hers: Browser) -> None:
    cookie = hers.cookie("session")
    assert cookie is not None
    for seen in (await every(site, hers)).values():
        assert cookie not in seen.answer.text
