"""Which forms are taken: those of our own pages, as they were shown to this browser; and how they must be spelled."""

from itertools import product

import pytest

from storage.organisations import memberships_of
from tests.pages.browser import Browser
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site
from transports.web.pages.app import PAGE_ROUTES
from transports.web.pages.request import FormSeals

BEFORE = ["/sign-in", "/sign-in/code", "/sign-up", "/sign-up/code"]
POSTED = [path for path, route in PAGE_ROUTES.items() if route.act and not route.anywhere]
PRIVATE = [path for path in POSTED if path not in BEFORE]


def test_the_table_below_names_every_form() -> None:
    assert {path for path in POSTED if not PAGE_ROUTES[path].private} == set(BEFORE)


@pytest.mark.long
async def test_a_form_of_somebody_signed_in_needs_the_token_of_their_session(site: Site, hers: Browser) -> None:
    token = (await hers.get("/auth/account")).page.forms[0].fields["csrf"]
    async with site.browser() as second:
        foreign = (await site.sign_in(second, ADA_ADDRESS)).page.forms[0].fields["csrf"]
        anonymous = (await second.get("/auth/sign-in")).page.forms[0].fields["csrf"]
    wrong = ({}, {"csrf": ""}, {"csrf": "x"}, {"csrf": token[:-1]}, {"csrf": token + "A"}, {"csrf": foreign}, {"csrf": anonymous})
    for path, given in product(PRIVATE, wrong):
        seen = await hers.post(f"/auth{path}", given)
        assert seen.status == 403, (path, given)
        assert "This form was not taken" in seen.page.text
    assert (await hers.get("/auth/account")).path == "/auth/account", "nothing was done"


async def test_a_form_before_signing_in_needs_the_token_of_the_browser(site: Site, browser: Browser) -> None:
    token = (await browser.get("/auth/sign-in")).page.forms[0].fields["csrf"]
    async with site.browser() as other:
        foreign = (await other.get("/auth/sign-in")).page.forms[0].fields["csrf"]
    fields = {"email": ADA_ADDRESS, "organization_name": "Fjord", "code": "123456"}
    for path, given in product(BEFORE, ({}, {"csrf": foreign}, {"csrf": token[::-1]}, {"csrf": "ü"})):
        assert (await browser.post(f"/auth{path}", fields | given)).status == 403, (path, given)
    async with site.browser() as bare:
        for path in BEFORE:
            assert (await bare.post(f"/auth{path}", fields | {"csrf": token})).status == 403, "a token without its cookie"
    assert await site.letters() == []


async def test_a_form_replayed_after_signing_out_does_nothing(hers: Browser) -> None:
    page = (await hers.get("/auth/account")).page
    cookie = hers.cookie("session")
    await hers.send(page.form("/auth/sign-out"))
    hers.http.cookies.set("session", cookie or "", domain="127.0.0.1", path="/")
    for path in PRIVATE:
        seen = await hers.post(f"/auth{path}", {"csrf": page.forms[0].fields["csrf"], "do": "create", "name": "late"})
        assert seen.path.startswith("/auth/sign-in"), path


async def test_the_origin_of_a_form_must_be_ours(site: Site, hers: Browser) -> None:
    form = (await hers.get("/auth/account")).page.form("/auth/sign-out")
    for origin in ("null", "https://evil.example", "http://127.0.0.1", "https://127.0.0.1:8000", "http://127.0.0.1:8001", ""):
        assert (await hers.post(form.action, form.fields, Origin=origin)).status == 403, origin
    for from_where in ("cross-site", "same-site", "strange"):
        seen = await hers.post(form.action, form.fields, **{"Sec-Fetch-Site": from_where})
        assert seen.status == 403, from_where
    assert (await hers.get("/auth/account")).path == "/auth/account"
    answer = await hers.http.post(form.action, data=form.fields)  # an old browser says neither
    assert answer.headers["location"] == "/auth/sign-in"


@pytest.mark.cases
@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/x-www-form-urlencoded; charset=UTF-8", 303),
        ("application/json", 415),
        ("text/plain", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/x-www-form-urlencoded; charset=utf-16", 415),
        ("", 415),
    ],
)
async def test_only_plain_forms_are_taken(hers: Browser, kind: str, status: int) -> None:
    form = (await hers.get("/auth/account")).page.form("/auth/sign-out")
    answer = await hers.http.post(form.action, content=f"csrf={form.fields['csrf']}", headers={"Content-Type": kind, "Origin": hers.origin})
    assert answer.status_code == status


@pytest.mark.cases
@pytest.mark.parametrize(
    ("extra", "status", "words"),
    [
        ("&email=a&email=b", 400, "sent twice"),
        ("&csrf=x", 400, "sent twice"),
        ("&email=%00", 400, "control character"),
        ("&email=a%0Ab", 400, "control character"),
        ("&email=%C2%85", 400, "control character"),
        ("&e%0Dmail=a", 400, "control character"),
        ("&email=%ff", 400, "cannot be read"),
        ("&email=%ed%a0%80", 400, "cannot be read"),
        ("&a=1" * 351, 400, "cannot be read"),
        ("".join(f"&a{n}=1" for n in range(101)), 400, "cannot be read"),
        ("&email=" + "a" * 16384, 413, "larger than 16384 bytes"),
    ],
)
async def test_a_form_that_could_be_read_in_two_ways_is_refused(browser: Browser, extra: str, status: int, words: str) -> None:
    token = (await browser.get("/auth/sign-in")).page.forms[0].fields["csrf"]
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": browser.origin}
    answer = await browser.http.post("/auth/sign-in", content=f"csrf={token}{extra}", headers=headers)
    assert answer.status_code == status
    assert words in answer.text


async def test_the_limit_is_counted_while_the_body_comes_in(browser: Browser) -> None:
    sent = 0

    async def pieces():
        nonlocal sent
        for _ in range(1000):
            sent += 4096
            yield b"a" * 4096

    headers = {"Content-Type": "application/x-www-form-urlencoded", "Origin": browser.origin}
    answer = await browser.http.post("/auth/sign-in", content=pieces(), headers=headers)
    assert answer.status_code == 413
    assert sent <= 16384 + 4 * 4096


async def test_compressed_forms_are_refused(browser: Browser) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Content-Encoding": "gzip", "Origin": browser.origin}
    assert (await browser.http.post("/auth/sign-in", content=b"x", headers=headers)).status_code == 415


async def test_a_form_that_says_nothing_to_do_is_refused(site: Site, hers: Browser, ada: str) -> None:
    token = (await hers.get("/auth/account")).page.forms[0].fields["csrf"]
    for path, do in product(("/account", "/api-keys", "/members", "/onboarding"), ("", "explode")):
        seen = await hers.post(f"/auth{path}", {"csrf": token, "do": do})
        assert seen.status == 400
        assert "does not say what to do" in seen.page.text
    assert len(await site.service.store.read(memberships_of, person=ada)) == 1


def test_a_new_key_of_the_ring_breaks_no_open_page_and_a_removed_one_does() -> None:
    shown = FormSeals("a:1").make("form", "session|x")
    assert FormSeals("b:2, a:1").good(shown, "form", "session|x")
    assert not FormSeals("b:2").good(shown, "form", "session|x")
    assert not FormSeals("a:1").good(shown, "slip", "session|x")
    assert FormSeals("b:2,a:1").make("form", "session|x") != shown


async def test_a_sign_in_form_of_another_window_leads_on_when_one_is_signed_in(site: Site, browser: Browser, ada: str) -> None:
    old = (await browser.get("/auth/sign-in")).page.form("/auth/sign-in")
    await site.sign_in(browser, ADA_ADDRESS)
    assert (await browser.send(old, email=ADA_ADDRESS)).path == "/auth/account"
