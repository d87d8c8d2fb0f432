"""Strangers ask for codes for somebody's address: a browser that they have signed in with before is not kept out by that."""

import pytest

from tests.pages.browser import Browser, Seen
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site
from transports.web.pages.login_cookies import KNOWN_BROWSER_SECONDS, MOST_ADDRESSES

BOB = "bob@fjord.example"


async def asked(browser: Browser, address: str = ADA_ADDRESS) -> Seen:
    return await browser.send((await browser.get("/auth/sign-in")).page.form("/auth/sign-in"), email=address)


async def flood(site: Site, *networks: str) -> None:
    """Five codes for Ada from each."""
    for network in networks:
        async with site.browser(network) as stranger:
            assert [(await asked(stranger)).status for _ in range(5)] == [200] * 5


async def signed_out(site: Site, browser: Browser) -> None:
    """And the hour of the codes so far is over."""
    await browser.send((await browser.get("/auth/account")).page.form("/auth/sign-out"))
    site.clock.advance(3600)


async def test_five_anonymous_requests_lock_nobody_out(site: Site, browser: Browser, ada: str) -> None:
    await flood(site, "198.51.100.66")
    async with site.browser("198.51.100.66") as stranger:
        assert (await asked(stranger)).status == 429
    assert (await site.sign_in(browser, ADA_ADDRESS)).path == "/auth/account"


@pytest.mark.long
async def test_a_known_browser_signs_in_while_strangers_of_many_networks_ask(site: Site, hers: Browser, ada: str) -> None:
    await signed_out(site, hers)
    await flood(site, *(f"198.51.100.{number}" for number in range(4)))
    async with site.browser("203.0.113.99") as new:
        assert (await asked(new)).status == 429, "all strangers together have had their mails"
    assert (await site.sign_in(hers, ADA_ADDRESS)).path == "/auth/account"
    await hers.send((await hers.get("/auth/account")).page.form("/auth/sign-out"))
    assert [(await asked(hers)).status for _ in range(5)] == [200] * 4 + [429], "it has five an hour"


@pytest.mark.long
async def test_a_browser_is_known_for_the_addresses_that_were_proved_in_it_alone(site: Site, hers: Browser, ada: str) -> None:
    await site.person(BOB)
    await signed_out(site, hers)
    for number in range(4):
        async with site.browser(f"198.51.100.{number}") as stranger:
            assert [(await asked(stranger, BOB)).status for _ in range(5)] == [200] * 5
    assert (await asked(hers, BOB)).status == 429
    cookie = hers.cookie("known")
    assert cookie is not None and "fjord" not in cookie
    async with site.browser("203.0.113.98") as thief:
        for forged in (cookie.replace(".", "..", 1), cookie[:-1] + "A", "A" * 43 + cookie[43:], cookie[:43], "x", "." * 200):
            thief.http.cookies.set("known", forged, domain="127.0.0.1", path="/")
            assert (await thief.get("/auth/sign-in")).status == 200


@pytest.mark.long
async def test_a_forged_or_old_cookie_makes_no_browser_known(site: Site, hers: Browser, ada: str) -> None:
    await signed_out(site, hers)
    cookie = hers.cookie("known") or ""
    id, until, seal = cookie.split(".")
    await flood(site, *(f"198.51.100.{number}" for number in range(4)))
    async with site.browser("203.0.113.98") as thief:
        for forged in (
            f"{id}.{int(until) + 1}.{seal}",
            f"{'A' * 43}.{until}.{seal}",
            f"{id}.{until}.{seal[:-2]}AA",
            f"{id}.{until}",
            id,
            "",
        ):
            thief.http.cookies.set("known", forged, domain="127.0.0.1", path="/")
            assert (await asked(thief)).status == 429, forged
        site.clock.advance(KNOWN_BROWSER_SECONDS - 3610)
        await flood(site, *(f"198.51.100.{number}" for number in range(4)))
        thief.http.cookies.set("known", cookie, domain="127.0.0.1", path="/")
        assert (await asked(thief)).status == 200, "somebody's whole cookie is their browser, and gets their mails sent: no more"
        site.clock.advance(10)
        assert (await asked(thief)).status == 429


@pytest.mark.long
async def test_a_browser_of_a_family_is_known_for_five_addresses(site: Site, browser: Browser) -> None:
    people = [f"p{number}@fjord.example" for number in range(MOST_ADDRESSES + 1)]
    for address in [*people, people[-1]]:
        await site.person(address)
        await site.sign_in(browser, address)
        await signed_out(site, browser)
    cookie = browser.cookie("known") or ""
    assert len(cookie.split(".")) == 1 + 2 * MOST_ADDRESSES and len(cookie) < 700
    async with site.browser("203.0.113.98") as elsewhere:
        assert {(await asked(elsewhere, people[-1])).status for _ in range(5)} == {200}
        assert (await asked(elsewhere, people[-1])).status == 429
        elsewhere.http.cookies.set("known", cookie, domain="127.0.0.1", path="/")
        assert (await asked(elsewhere, people[-1])).status == 200


async def test_several_requests_are_open_at_once_and_each_page_has_its_own_code(site: Site, browser: Browser, ada: str) -> None:
    first = await asked(browser)
    one = await site.code()
    second = await asked(browser)
    two = await site.code()
    assert one != two
    crossed = await browser.send(first.page.form("/auth/sign-in/code"), code=two)
    assert crossed.status == 400 and "mailed for this page" in (crossed.page.wrong("code") or "")
    for _ in range(4):
        await browser.send(first.page.form("/auth/sign-in/code"), code=two)
    assert (await browser.send(first.page.form("/auth/sign-in/code"), code=one)).status == 400, "five wrong guesses ended the first"
    assert (await browser.send(second.page.form("/auth/sign-in/code"), code=two)).path == "/auth/account", "and the first alone"


async def test_the_oldest_of_many_open_requests_is_forgotten(site: Site, browser: Browser, ada: str) -> None:
    pages = []
    for _ in range(4):
        pages.append((await asked(browser), await site.code()))
        site.clock.advance(1)
    held = [name for one in browser.http.cookies.jar if (name := one.name).startswith("code-")]
    assert len(held) == 3
    oldest, code = pages[0]
    assert (await browser.send(oldest.page.form("/auth/sign-in/code"), code=code)).path == "/auth/sign-in"
    page, code = pages[1]
    assert (await browser.send(page.page.form("/auth/sign-in/code"), code=code)).path == "/auth/account"
    assert not [one.name for one in browser.http.cookies.jar if one.name.startswith("code-")]
