"""The pages of shops and orders, on the demo: what is sold, whether it is right, and where an order is."""

import re
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from typing import cast
from uuid import uuid4

import httpx
import pytest

from tests.console.conftest import DemoConsole
from tests.pages.browser import Browser, Seen

BUYER = "nora@travel.example"
ICCID = re.compile(r"\b89\d{16,20}\b")


async def demo_shop(demo: Browser) -> str:
    """The path of the console's page of the demo's shop."""
    listed = await demo.get("/console/shops")
    return "/console" + re.findall(r'/console(/shops/sf_[0-9a-z]{26})">Demo Telecom<', listed.page.html)[0]


@pytest.fixture
async def buyer(demo_server: DemoConsole) -> AsyncGenerator[Browser]:
    """Somebody at the demo's shop."""
    headers = {"Accept": "text/html", "Accept-Language": "en"}
    async with httpx.AsyncClient(base_url=demo_server.server.base_url, headers=headers, timeout=60) as http:
        yield Browser(http)


async def bought(buyer: Browser) -> tuple[str, str]:
    """An eSIM is bought on the shop's pages: the order's number, and the ICCID that its buyer sees."""
    seen = await buyer.get("/shop/demo")
    checkout = await buyer.send(seen.page.form("/checkout", plan="nordics-1gb"))
    seen = await buyer.send(checkout.page.form(checkout.path), "Pay", email=BUYER)
    number = re.search(r"/orders/(onr_[0-9a-z]{26})", seen.path)
    assert number is not None, seen.path
    for _ in range(1200):
        found = ICCID.search(seen.page.text)
        if found is not None:
            return number[1], found[0]
        seen = await buyer.get(seen.path)
    raise AssertionError(f"no eSIM came: {seen.page.text[:500]}")


async def changed_price(demo: Browser, plan: str, price: str) -> Seen:
    """The plan's page after its price was typed and stored."""
    return await demo.send((await demo.get(plan)).page.form(plan, "sale"), price_cents=price)


@pytest.mark.long
async def test_a_bought_order_is_found_and_its_page_shows_it_ready_with_its_iccid(demo: Browser, buyer: Browser) -> None:
    number, iccid = await bought(buyer)
    listed = await demo.get("/console/shops/orders?storefront=demo&status=ready&email=NORA%40travel.example")
    assert f'href="/console/shops/orders/{number}"' in listed.page.html
    other = await demo.get("/console/shops/orders?email=somebody%40travel.example")
    assert number not in other.page.html and "No order matches" in other.page.text
    seen = await demo.get(f"/console/shops/orders/{number}")
    assert "It is done: the buyer has the eSIM." in seen.page.text
    assert f'href="/console/lines/{iccid}"' in seen.page.html
    places = [seen.page.text.index(f"{step} ") for step in ("Begun", "Paid", "eSIM asked for", "eSIM drawn", "Ready for the buyer")]
    assert places == sorted(places)
    assert BUYER not in seen.page.text and "ord_" not in seen.page.html and "LPA:" not in seen.page.html


@pytest.mark.long
async def test_a_new_link_is_mailed_once_however_often_its_form_is_sent(demo: Browser, buyer: Browser) -> None:
    number, _ = await bought(buyer)
    page = f"/console/shops/orders/{number}"
    form = (await demo.get(page)).page.form(page, "renew")
    for _ in range(2):
        seen = await demo.send(form)
        assert (seen.status, seen.path) == (200, f"{page}?done=renewed")
        assert "ord_" not in seen.page.html and seen.page.text.count("Mail with a new link") == 1


def stop_order(server: DemoConsole, number: str) -> None:
    """As the service leaves an order for which nothing could be sent, a day ago."""
    args = [str(each) for each in cast("list[object]", server.server.process.args)]
    with closing(sqlite3.connect(Path(args[args.index("--data") + 1]) / "service.db", timeout=30)) as connection:
        connection.execute("DELETE FROM issuance WHERE key = ?", (number,))
        connection.execute(
            "UPDATE storefront_order SET status = 'needs_review', iccid = NULL, updated = updated - 90000 WHERE id = ?", (number,)
        )
        connection.commit()


@pytest.mark.long
async def test_an_order_that_waits_for_a_person_is_settled_after_a_question(
    demo: Browser, buyer: Browser, demo_server: DemoConsole
) -> None:
    number, _ = await bought(buyer)
    stop_order(demo_server, number)
    page = f"/console/shops/orders/{number}"
    assert number in (await demo.get("/console/shops/orders?status=needs_review")).page.html
    seen = await demo.get(page)
    assert "This order waits for you: Nordics 1 GB" in seen.page.text
    german = await demo.http.get(page, headers={"Accept-Language": "de"})
    assert "Jemand muss nachsehen. Ob die eSIM ausgegeben wurde, wird gerade geklärt; sie wird nie zweimal ausgegeben." in german.text
    form = seen.page.form(page, "settle")
    assert form.choices == {"outcome": ["refund"]}
    empty = await demo.send(form, reason="")
    assert (empty.status, empty.page.form(page, "settle").fields["outcome"]) == (400, "refund")
    asked = await demo.send(form, reason="Nothing left the stock")
    assert (asked.status, asked.path) == (200, page) and "what was paid goes back to its buyer" in asked.page.text
    assert "Waits for a person" in (await demo.get(page)).page.text
    settled = await demo.send(asked.page.form(page, "settle"))
    assert (settled.status, settled.path) == (200, f"{page}?done=settled")
    assert "No eSIM came of it, and what was paid goes back." in settled.page.text
    assert "Refund on its way" in settled.page.text or "Refunded" in settled.page.text


@pytest.mark.long
async def test_the_list_of_orders_pages_and_keeps_its_filters(demo: Browser, buyer: Browser) -> None:
    await bought(buyer)
    number, _ = await bought(buyer)  # the newest order comes first
    seen = await demo.get(f"/console/shops/orders?storefront=demo&status=ready&after={number}")
    first = [tag.attributes["href"] for tag in seen.page.tags if tag.name == "a" and "status=ready" in tag.attributes.get("href", "")]
    assert "/console/shops/orders?storefront=demo&status=ready" in first
    assert (await demo.get("/console/shops/orders?after=onr_none")).status == 400
    while 'rel="next"' in seen.page.html:
        (further,) = [tag.attributes["href"] for tag in seen.page.tags if tag.attributes.get("rel") == "next"]
        seen = await demo.get(further)
    oldest = re.findall(r"/console/shops/orders/([a-z0-9_]+)", seen.page.html)[-1]
    behind = await demo.get(f"/console/shops/orders?storefront=demo&status=ready&after={oldest}")
    assert behind.status == 200 and "No further order" in behind.page.text
    assert 'href="/console/shops/orders?storefront=demo&amp;status=ready"' in behind.page.html


@pytest.mark.long
async def test_a_shop_says_whether_each_plan_gives_what_it_promises(demo: Browser) -> None:
    seen = await demo.get(await demo_shop(demo))
    assert "5 plans are on sale, and their templates give what they promise." in seen.page.text
    assert "Nordics 1 GB" in seen.page.text and "55010" in seen.page.text
    assert 'href="/shop/demo"' in seen.page.html


@pytest.mark.long
async def test_a_price_that_is_changed_on_the_page_is_the_price_in_the_shop_and_the_form_sent_twice_changes_once(
    demo: Browser, buyer: Browser
) -> None:
    plan = f"{await demo_shop(demo)}/plans/nordics-1gb"
    form = (await demo.get(plan)).page.form(plan, "sale")
    seen = await demo.send(form, price_cents="8,35")
    assert (seen.status, seen.path) == (200, f"{plan}?done=changed")
    assert "€8.35" in (await buyer.get("/shop/demo")).page.text
    again = await demo.send(form, price_cents="8,35")
    assert (again.status, again.path) == (200, f"{plan}?done=changed")
    assert (await changed_price(demo, plan, "7.95")).status == 200
    late = await demo.send(form, price_cents="8,35")
    assert (late.status, late.page.form(plan, "sale").fields["price_cents"]) == (412, "8,35")
    assert "You have changed this yourself at" in late.page.text
    assert "€7.95" in (await buyer.get("/shop/demo")).page.text


@pytest.mark.cases
@pytest.mark.parametrize("price", ["0", "ten", "1.234", "-1", "99999999"])
async def test_what_is_no_price_is_refused_in_its_place_and_kept(demo: Browser, price: str) -> None:
    plan = f"{await demo_shop(demo)}/plans/europe-3gb"
    seen = await changed_price(demo, plan, price)
    assert (seen.status, seen.page.form(plan, "sale").fields["price_cents"]) == (400, price)
    assert (seen.page.wrong("price_cents") or "").startswith("This is no price.")


@pytest.mark.parametrize(
    ("page", "do", "wrong"), [("plans/europe-3gb", "sale", "price_cents"), ("plans/europe-3gb", "terms", "name"), ("", "change", "name")]
)
async def test_a_form_of_which_everything_that_is_typed_was_left_out_is_shown_again_with_what_is_wrong(
    demo: Browser, page: str, do: str, wrong: str
) -> None:
    path = f"{await demo_shop(demo)}/{page}".rstrip("/")
    form = (await demo.get(path)).page.form(path, do)
    seen = await demo.post(path, {name: form.fields[name] for name in ("csrf", "do", "once", "version")})
    assert (seen.status, seen.page.form(path, do).fields[wrong]) == (400, "")
    assert seen.page.wrong(wrong)


@pytest.mark.long
async def test_a_shop_is_made_once_sells_a_plan_of_a_template_and_is_published(demo: Browser, buyer: Browser) -> None:
    slug = f"fjord-{uuid4().hex[:10]}"
    form = (await demo.get("/console/shops")).page.form("/console/shops", "create")
    typed = {"slug": slug, "name": "Fjord Travel", "support_email": "help@fjord.example", "accent": "#0B6E4F"}
    first, again = [await demo.send(form, **typed) for _ in range(2)]
    shop = first.path.removesuffix("?done=created")
    assert (first.status, again.path) == (200, first.path)
    assert "The shop has no plan, so it sells nothing." in first.page.text and "it is a draft" in first.page.text
    choice = await demo.get(f"{shop}/plans?country=no")
    assert f"{shop}/plans?template=55010&country=no" in [tag.attributes.get("href") for tag in choice.page.tags]
    form = (await demo.get(f"{shop}/plans?template=55010&country=no")).page.form("/plans", "put")
    assert form.fields["validity_days"] == "30" and form.fields["countries"] == "NO"
    refused = await demo.send(form, slug="norway", name="Norway", price_cents="9.90", data_mb="900000", countries="no")
    assert refused.status == 400 and "promised" in (refused.page.wrong("data_mb") or "")
    put = await demo.send(refused.page.form("/plans", "put"), data_mb="1000")
    assert (put.status, put.path) == (200, f"{shop}/plans/norway?done=put")
    assert (await buyer.get(f"/shop/{slug}")).status == 404
    opened = await demo.send((await demo.get(shop)).page.form(shop, "publish"))
    assert "1 plan is on sale, and its template gives what it promises." in opened.page.text
    public = await buyer.get(f"/shop/{slug}")
    assert "Norway" in public.page.text and "€9.90" in public.page.text


async def test_a_plan_does_not_take_the_place_of_another_unseen(demo: Browser) -> None:
    shop = await demo_shop(demo)
    form = (await demo.get(f"{shop}/plans?template=55020")).page.form("/plans", "put")
    seen = await demo.send(form, slug="usa-3gb", name="Another", price_cents="1", countries="US")
    assert seen.status == 409 and "another plan with this short name" in (seen.page.wrong("slug") or "")


async def test_what_a_plan_promises_is_replaced_and_its_price_stays(demo: Browser) -> None:
    plan = f"{await demo_shop(demo)}/plans/baltics-2gb"
    before = (await demo.get(plan)).page.form(plan, "sale").fields["price_cents"]
    seen = await demo.send((await demo.get(plan)).page.form(plan, "terms"), name="Baltics", validity_days="10")
    assert (seen.status, seen.path) == (200, f"{plan}?done=changed")
    assert "Baltics" in seen.page.text and "Buyers get more days than promised" in seen.page.text
    assert seen.page.form(plan, "sale").fields["price_cents"] == before
    demo.http.headers["Accept-Language"] = "de"
    german = await demo.get(plan)
    said = r"Käufer bekommen mehr Tage als versprochen\. Versprochen sind 10 Tage, und ein Paket der Vorlage läuft \d+: Käufer "
    assert re.search(said, german.page.text) and '<span class="soft" lang' not in german.page.html
    refused = await demo.send(german.page.form(plan, "terms"), data_mb="900000", validity_days="3000")
    wrong = refused.page.wrong("data_mb") or ""
    assert wrong.startswith("Versprochen sind 900.000 MB, und ein Paket der Vorlage hat ") and " läuft " in wrong
    assert wrong.endswith("Es wurde nichts gespeichert.") and "promised" not in wrong


@pytest.mark.long
async def test_what_buyers_see_of_a_shop_is_changed_and_what_is_cleared_goes(demo: Browser) -> None:
    shop = await demo_shop(demo)
    form = (await demo.get(shop)).page.form(shop, "change")
    seen = await demo.send(form, "Save", tagline="", accent="#123456")
    changed = seen.page.form(shop, "change").fields
    assert (seen.status, changed["tagline"], changed["accent"]) == (200, "", "#123456")
    assert (await demo.send(form, "Save", tagline="", accent="#654321")).status == 412
    wrong = await demo.send(seen.page.form(shop, "change"), "Save", support_email="nobody")
    assert wrong.status == 400 and wrong.page.wrong("support_email") and wrong.page.form(shop, "change").fields["accent"] == "#123456"
    former = {name: form.fields[name] for name in ("tagline", "accent")}
    assert (await demo.send(seen.page.form(shop, "change"), "Save", **former)).status == 200


async def test_shops_and_orders_of_nobody_say_what_to_do_next(hers: Browser) -> None:
    assert "You have no shop yet" in (await hers.get("/console/shops")).page.text
    assert "Nothing was bought yet" in (await hers.get("/console/shops/orders")).page.text
    for path in ("/console/shops/sf_none", "/console/shops/orders/onr_none", "/console/shops/sf_none/plans/x"):
        assert (await hers.get(path)).status == 404


@pytest.mark.long
async def test_a_shop_is_seen_as_buyers_see_it_with_what_is_not_saved_and_sells_nothing(demo: Browser) -> None:
    page = await demo_shop(demo)
    shown = await demo.get(page)
    frame = next(tag.attributes for tag in shown.page.tags if tag.name == "iframe")
    assert (frame["sandbox"], frame["src"]) == ("", f"{page}/preview")
    saved = await demo.get(f"{page}/preview")
    assert "Demo Telecom" in saved.page.text and "Japan 3 GB" in saved.page.text and "€17.90" in saved.page.text
    assert saved.answer.headers["content-security-policy"].endswith("form-action 'none'; frame-ancestors 'self'")
    assert shown.answer.headers["content-security-policy"].endswith("frame-ancestors 'none'")
    looked = await demo.send(shown.page.form(page, "change"), "See it first", tagline="North & <b>west</b>", accent="#123456")
    assert looked.status == 200 and "This is not saved yet." in looked.page.text
    assert looked.page.form(page, "change").fields["tagline"] == "North & <b>west</b>"
    source = next(tag.attributes["src"] for tag in looked.page.tags if tag.name == "iframe")
    preview = await demo.get(source)
    assert "North & <b>west</b>" in preview.page.text and "#123456" in preview.page.html
    buttons = [tag.attributes for tag in preview.page.tags if tag.name == "button"]
    assert buttons and all("disabled" in each for each in buttons)
    assert [form.method for form in preview.page.forms] == ["get"] and "/checkout" not in preview.page.html
    assert {tag.attributes.get("href", "#content") for tag in preview.page.tags if tag.name == "a"} <= {
        "#content",
        "mailto:support@demo.invalid",
    }
    assert "North" not in (await demo.get(page)).page.text
    assert (await demo.get("/console/shops/sf_01k0a8w7zv6q4k3m2n1p0r9s8t/preview")).status == 404
