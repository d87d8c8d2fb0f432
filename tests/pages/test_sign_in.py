"""Signing in and out: codes, cookies, and how long they last."""

from http.cookies import SimpleCookie
from pathlib import Path

import pytest

from operations.people.browser_sessions import SESSION_IDLE_SECONDS, SESSION_LIFETIME_SECONDS, SESSION_NOTED_SECONDS
from operations.secret_tokens import secret_digest
from storage.browser_sessions import find_browser_session
from tests.pages.browser import Browser
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import HTTPS, Site, open_site
from tests.setup.signing_up import other_than
from transports.web.pages.app import PAGE_ROUTES
from transports.web.pages.request import OWN_PAGES, next_page

NASTY = [
    "https://evil.example",
    "http://evil.example/auth/account",
    "//evil.example",
    "///evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "/auth/\\evil.example",
    "/auth//evil.example",
    "/auth/account//evil.example",
    "/auth/..//evil.example",
    "/auth/../v1/api-keys",
    "/auth/%2e%2e/%2f/evil.example",
    "/auth/account@evil.example",
    "/auth@evil.example",
    "/auth.evil.example",
    "javascript:alert(1)",
    "JaVaScRiPt://%0aalert(1)",
    "data:text/html,hello",
    "/auth/account?next=https://evil.example",
    "/auth/consent?request=a&next=//evil.example",
    "/auth/consent?request=a#//evil.example",
    "/auth/consent?request=",
    "/auth/payments?code=a&state=b&next=//evil.example",
    "/auth/payments?code=a",
    "/auth/payments?code=//evil.example&state=b",
    "/auth/payments?code=a&state=" + "b" * 101,
    "/auth/consent?request=" + "a" * 201,
    "/auth/account/",
    "/AUTH/account",
    " /auth/account x",
    "/auth/аccount",
    "/auth/sign-out",
    "/auth/sign-in",
    "/auth/authorize?request=a",
    "/v1/api-keys",
    "/",
    "",
    ".",
    "?request=a",
]


async def test_somebody_signs_in_with_the_mailed_code_and_out_again(site: Site, browser: Browser, ada: str) -> None:
    seen = await site.sign_in(browser, ADA_ADDRESS)
    assert (seen.status, seen.path) == (200, "/auth/account")
    assert "Ada Berg" in seen.page.text and ADA_ADDRESS in seen.page.text and "Fjord" in seen.page.text
    out = await browser.send(seen.page.form("/auth/sign-out"))
    assert out.path == "/auth/sign-in"
    assert (await browser.get("/auth/account")).path == "/auth/sign-in"


async def test_auth_itself_leads_to_signing_in_or_to_the_account(site: Site, browser: Browser, ada: str) -> None:
    assert (await browser.get("/auth")).path == "/auth/sign-in"
    assert (await browser.get("/auth/")).path == "/auth/sign-in"
    await site.sign_in(browser, ADA_ADDRESS)
    assert (await browser.get("/auth")).path == "/auth/account"
    assert (await browser.get("/auth/sign-in")).path == "/auth/account"


async def test_who_wanted_a_page_gets_to_it(site: Site, browser: Browser, ada: str) -> None:
    seen = await site.sign_in(browser, ADA_ADDRESS, "/auth/members")
    assert (seen.status, seen.path) == (200, "/auth/members")


async def test_a_wrong_code_is_said_beside_the_field_and_the_right_one_still_works(site: Site, browser: Browser, ada: str) -> None:
    seen = await browser.send((await browser.get("/auth/sign-in")).page.form("/auth/sign-in"), email=ADA_ADDRESS)
    right = await site.code()
    for typed in ("12", "abcdef", "123456", "uuuu-uuuu", other_than(right)):
        seen = await browser.send(seen.page.form("/auth/sign-in/code"), code=typed)
        assert seen.status == 400
        assert seen.page.wrong("code") == (
            "That is not the code that was mailed for this page, or it is not good any more. "
            "Check the eight letters and digits; after 5 wrong tries or 10 minutes no code is good any more, so get a new one."
        )
    seen = await browser.send(seen.page.form("/auth/sign-in/code"), code=f" {right[:3].lower()} {right[3:4]} - {right[5:]} ")
    assert seen.path == "/auth/account"


async def test_the_page_of_the_code_can_be_loaded_again_and_needs_the_browser_that_began(site: Site, browser: Browser, ada: str) -> None:
    seen = await browser.send((await browser.get("/auth/sign-in")).page.form("/auth/sign-in"), email=ADA_ADDRESS)
    assert (await browser.get("/auth/sign-in/code")).page.text == seen.page.text
    assert (await browser.get("/auth/sign-up/code")).path == "/auth/sign-up", "it is the code of a sign-in"
    async with site.browser() as other:
        assert (await other.get("/auth/sign-in/code")).path == "/auth/sign-in"
        other.http.cookies.set(*browser.slip())
        assert (await other.get("/auth/sign-in/code")).path == "/auth/sign-in"


async def test_pages_are_the_same_byte_for_byte_whoever_is_known(site: Site, ada: str) -> None:
    """What differs are tokens, which are random, and the address that was typed."""
    answers: list[tuple[object, ...]] = []
    for address in (ADA_ADDRESS, "bob@fjord.example"):
        async with site.browser() as browser:
            first = await browser.get("/auth/sign-in")
            posted = await browser.http.post(
                "/auth/sign-in",
                data=first.page.form("/auth/sign-in").fields | {"email": address},
                headers={"Origin": browser.origin, "Sec-Fetch-Site": "same-origin"},
            )
            page = await browser.get("/auth/sign-in/code")
            fields = page.page.forms[0].fields
            text = page.answer.text.replace(fields["csrf"], "-").replace(address, "-").replace(fields["request"], "-")
            wrong = await browser.send(page.page.form("/auth/sign-in/code"), code="00000000")
            fields = wrong.page.forms[0].fields
            refused = wrong.answer.text.replace(fields["csrf"], "-").replace(address, "-").replace(fields["request"], "-")
            answers.append((posted.status_code, posted.headers["location"], posted.content, text, wrong.status, refused))
    assert answers[0] == answers[1]
    assert len(await site.letters()) == 2, "each got a mail"


async def test_too_many_sign_ins_are_told_on_the_page(site: Site, browser: Browser, ada: str) -> None:
    form = (await browser.get("/auth/sign-in")).page.form("/auth/sign-in")
    answers = [await browser.send(form, email=ADA_ADDRESS) for _ in range(6)]
    assert [seen.status for seen in answers] == [200] * 5 + [429]
    assert "Too many tries; try again in 60 minutes." in answers[-1].page.text
    assert answers[-1].page.form("/auth/sign-in").fields["email"] == ADA_ADDRESS


async def test_an_address_that_is_none_is_said_beside_the_field(browser: Browser) -> None:
    form = (await browser.get("/auth/sign-in")).page.form("/auth/sign-in")
    for typed in ("", "ada", "Ada <ada@fjord.example>", "ada@fjord.example, bob@fjord.example"):
        seen = await browser.send(form, email=typed)
        assert seen.status == 400
        assert seen.page.wrong("email") is not None
        assert seen.page.form("/auth/sign-in").fields["email"] == typed


@pytest.mark.parametrize("wanted", NASTY)
def test_no_other_place_is_reached_by_signing_in(wanted: str) -> None:
    assert next_page(wanted) == "/account"


def test_the_pages_that_are_reached_by_signing_in_are_those_that_are_shown() -> None:
    assert {path for path, route in PAGE_ROUTES.items() if route.private and route.show} | {"/upgrade"} == OWN_PAGES
    assert next_page("/auth/consent?request=ar_Az09-_") == "/consent?request=ar_Az09-_"
    assert next_page("/auth/payments?code=ac_Az09&state=Az09-_") == "/payments?code=ac_Az09&state=Az09-_"


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example/", "/\\evil.example", "/auth/account\r\nSet-Cookie: a=b"])
async def test_a_nasty_next_stays_here_through_the_whole_flow(site: Site, browser: Browser, ada: str, wanted: str) -> None:
    answer = await browser.http.get("/auth/sign-in", params={"next": wanted})
    if "\r" in wanted:
        assert answer.status_code == 400
        return
    form = (await browser.get(str(answer.request.url))).page.form("/auth/sign-in")
    assert form.fields["next"] == "/auth/account"
    form.fields["next"] = wanted  # whoever forges the form itself
    seen = await browser.send(form, email=ADA_ADDRESS)
    seen = await browser.send(seen.page.form("/auth/sign-in/code"), code=await site.code())
    assert (seen.status, seen.path) == (200, "/auth/account")


@pytest.mark.parametrize(("base_url", "prefix", "secure"), [("http://127.0.0.1:8000", "", False), (HTTPS, "__Host-", True)])
async def test_cookies_are_closed_to_scripts_and_bound_to_the_host(tmp_path: Path, base_url: str, prefix: str, secure: bool) -> None:
    async with open_site(tmp_path, base_url) as site, site.browser() as browser:
        await site.person(ADA_ADDRESS)
        set_cookies: dict[str, list[str]] = {}

        async def note(response: object) -> None:
            for header in response.headers.get_list("set-cookie"):  # pyright: ignore[reportAttributeAccessIssue]
                set_cookies.setdefault(header.partition("=")[0], []).append(header)

        browser.http.event_hooks["response"].append(note)
        assert (await site.sign_in(browser, ADA_ADDRESS)).path == "/auth/account"
        [slip] = [name for name in set_cookies if name.startswith(f"{prefix}code-")]
        assert set_cookies.keys() == {f"{prefix}visitor", slip, f"{prefix}session", f"{prefix}known"}
        for name, headers in set_cookies.items():
            for header in headers:
                morsel = SimpleCookie(header)[name]
                assert (bool(morsel["secure"]), morsel["httponly"], morsel["samesite"]) == (secure, True, "Lax")
                assert (morsel["path"], morsel["domain"]) == ("/", "")
        assert int(SimpleCookie(set_cookies[f"{prefix}session"][0])[f"{prefix}session"]["max-age"]) == SESSION_LIFETIME_SECONDS
        assert len(browser.cookie(f"{prefix}session") or "") == 43
        assert browser.cookie(f"{prefix}visitor") is None and browser.cookie(slip) is None


async def test_signing_in_makes_a_new_cookie_whatever_was_there(site: Site, browser: Browser, ada: str) -> None:
    planted = "A" * 43
    browser.http.cookies.set("session", planted, domain="127.0.0.1", path="/")
    browser.http.cookies.set("visitor", planted, domain="127.0.0.1", path="/")
    await site.sign_in(browser, ADA_ADDRESS)
    first = browser.cookie("session")
    assert first not in (None, planted)
    seen = await browser.get("/auth/account")
    await browser.send(seen.page.form("/auth/sign-out"))
    await site.sign_in(browser, ADA_ADDRESS)
    assert browser.cookie("session") not in (None, planted, first)


async def test_two_cookies_of_one_name_are_none(site: Site, hers: Browser) -> None:
    cookie = hers.cookie("session")
    async with site.browser() as other:
        assert (await other.http.get("/auth/account", headers={"Cookie": f"session={cookie}"})).status_code == 200
        answer = await other.http.get("/auth/account", headers={"Cookie": f"session={cookie}; session={'A' * 43}"})
        assert answer.status_code == 303


async def test_a_stolen_cookie_opens_nothing_after_signing_out(site: Site, hers: Browser) -> None:
    cookie = hers.cookie("session")
    await hers.send((await hers.get("/auth/account")).page.form("/auth/sign-out"))
    async with site.browser() as thief:
        thief.http.cookies.set("session", cookie or "")
        assert (await thief.get("/auth/account")).path == "/auth/sign-in"


async def test_signing_out_everywhere_ends_every_browser_of_this_person_alone(site: Site, hers: Browser) -> None:
    await site.organisation(await site.person("bob@fjord.example"), "Bobs")
    async with site.browser() as second, site.browser("203.0.113.9") as bobs:
        seen = await site.sign_in(second, ADA_ADDRESS)
        assert "signed in with 2 browsers" in seen.page.text
        await site.sign_in(bobs, "bob@fjord.example")
        await hers.send((await hers.get("/auth/account")).page.form("/auth/sign-out/everywhere"))
        assert (await second.get("/auth/account")).path == "/auth/sign-in"
        assert (await bobs.get("/auth/account")).path == "/auth/account"


async def test_a_session_ends_after_a_day_without_use(site: Site, hers: Browser) -> None:
    site.clock.advance(SESSION_IDLE_SECONDS - SESSION_NOTED_SECONDS - 1)
    assert (await hers.get("/auth/account")).path == "/auth/account"
    site.clock.advance(SESSION_IDLE_SECONDS - 1)
    assert (await hers.get("/auth/account")).path == "/auth/account"
    site.clock.advance(SESSION_IDLE_SECONDS)
    assert (await hers.get("/auth/account")).path == "/auth/sign-in"


async def test_a_session_ends_after_two_weeks_however_much_it_is_used(site: Site, hers: Browser) -> None:
    for _ in range(27):
        site.clock.advance(SESSION_LIFETIME_SECONDS / 28)
        assert (await hers.http.get("/auth/account")).status_code == 200
    site.clock.advance(SESSION_LIFETIME_SECONDS / 28)
    cookie = hers.cookie("session")
    async with site.browser() as other:  # a browser that would keep the cookie for longer
        other.http.cookies.set("session", cookie or "")
        assert (await other.get("/auth/account")).path == "/auth/sign-in"


async def test_a_use_is_noted_every_five_minutes_at_most(site: Site, hers: Browser) -> None:
    cookie = hers.cookie("session")
    assert cookie is not None

    async def seen() -> float:
        now = site.clock.now()
        found = await site.service.store.read(find_browser_session, digest=secret_digest(cookie), now=now, idle=now - SESSION_IDLE_SECONDS)
        assert found is not None
        return found.seen

    begun = await seen()
    site.clock.advance(SESSION_NOTED_SECONDS - 1)
    await hers.get("/auth/account")
    assert await seen() == begun
    site.clock.advance(1)
    await hers.get("/auth/account")
    assert await seen() == begun + SESSION_NOTED_SECONDS


async def test_the_cookie_is_not_in_the_database_nor_anything_typed_in_the_log(
    site: Site, browser: Browser, ada: str, tmp_path: Path
) -> None:
    await site.sign_in(browser, ADA_ADDRESS)
    cookie, code = browser.cookie("session"), await site.code()
    assert cookie is not None
    await site.service.flush()
    for file in (tmp_path / "data").glob("service.db*"):
        assert cookie.encode() not in file.read_bytes()
    site.app._logs.flush()
    logged = b"".join(site.log)
    assert b"/auth" in logged
    for secret in (cookie, code, ADA_ADDRESS):
        assert secret.encode() not in logged
