"""The page of the affiliate programme."""

import pytest

from operations.ledger.payment_intake import record_platform_fee
from storage.organisations import memberships_of
from tests.pages.browser import Browser
from tests.pages.site import Site
from transports.web.pages.layout import format_money


async def test_an_organisation_joins_hands_its_link_out_and_sees_what_it_brought(site: Site, hers: Browser) -> None:
    page = (await hers.get("/auth/affiliates")).page
    page = (await hers.send(page.form("/auth/affiliates"))).page
    assert "0 organisations signed up by it." in page.text and "Nothing was earned yet." in page.text
    link = next(word for word in page.words if "/auth/sign-up?ref=" in word)
    async with site.browser() as browser:
        form = (await browser.get(link)).page.form("/auth/sign-up")
        seen = await browser.send(form, email="new@fjord.example", organization_name="Secret Holding")
        await browser.send(seen.page.form("/auth/sign-up/code"), code=await site.code())
        text = (await browser.get("/auth/affiliates")).page.text
        assert "Join the programme" in text and link not in text, "each sees its own"
    person = await site.person("new@fjord.example")
    [brought] = await site.service.store.read(memberships_of, person=person)
    await site.service.store.write(
        record_platform_fee,
        ref="inv_1",
        organisation=brought.organisation_id,
        month="2027-01",
        currency="EUR",
        amount=1_234_560,
        now=site.clock.now(),
        ids=site.service.ids,
    )
    page = (await hers.get("/auth/affiliates")).page
    assert "1 organisation signed up by it." in page.text and "Earned so far: 1,234.56 EUR" in page.text
    assert "whose fees were 12,345.60 EUR" in page.text and "Secret Holding" not in page.text
    assert page.forms[0].action == "/auth/sign-out" and len(page.forms) == 1, "one joins once"
    assert (await hers.get("/auth/affiliates?starting_after=com_none")).status == 400


async def test_somebody_without_an_organisation_is_told_so(site: Site, browser: Browser) -> None:
    await site.person("alone@fjord.example")
    seen = await site.sign_in(browser, "alone@fjord.example", "/auth/affiliates")
    assert seen.status == 409 and "You belong to no organisation yet" in seen.page.text


@pytest.mark.parametrize(
    ("amount", "currency", "shown"),
    [
        (5, "EUR", "0.05 EUR"),
        (-1490, "usd", "-14.90 USD"),
        (1490, "JPY", "1,490 JPY"),
        (-1, "KWD", "-0.001 KWD"),
        (0, "EUR", "0.00 EUR"),
        (1490, "MGA", "1,490 MGA"),
        (149000, "ISK", "1,490.00 ISK"),
        (149000, "UGX", "1,490.00 UGX"),
    ],
)
def test_amounts_of_the_processor_are_shown_as_people_write_them(amount: int, currency: str, shown: str) -> None:
    assert format_money(amount, currency) == shown
