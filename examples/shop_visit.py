"""A visit to a shop: an eSIM is chosen, paid for and shown, more data is added, the order is closed. Standard library alone.

    reseller serve
    python examples/shop_visit.py http://127.0.0.1:8000/shop/demo

It does what a buyer does in a browser without script: opens pages and presses their buttons. It pays only where the payment processor is
simulated; elsewhere it stops before the payment. The order's address, the activation code and the QR code are the buyer's, so none of them
is printed. `--plan` chooses by slug, `--email` says where the mail goes, `--keep` adds nothing and closes nothing.

`--network http://127.0.0.1:8090` is the address of a simulated network that is a server (docs/simulated-network.md): the phone is then
switched on there, in the country of `--country`, which the plan must cover, and uses data, so that the figures of the order's page move.
"""

import argparse
import json
import re
import sys
import time
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.cookiejar import CookieJar
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

PATIENCE = 60
"""Seconds to wait for an eSIM, or for more data."""
DATA, USED_BYTES = 33, 300_000_000
LEFT = re.compile(r"[\d.,]+\s[MG]B of [\d.,]+\s[MG]B left")
ICCID = re.compile(r"\b89\d{16,20}\b")
BROWSER = build_opener(HTTPCookieProcessor(CookieJar()))
"""It keeps cookies: the page of an order opens in the browser that began it."""
VOID = ("br", "col", "hr", "img", "input", "link", "meta")


@dataclass
class Form:
    """A form, with what it would send."""

    action: str
    fields: dict[str, str] = field(default_factory=dict[str, str])


class Page(HTMLParser):
    """A page as far as this program looks at it."""

    def __init__(self, url: str, text: str, wait: int) -> None:
        super().__init__()
        self.url, self.wait = url, wait
        self.forms: list[Form] = []
        self.codes: list[str] = []
        self.to_copy = 0
        self.heading = self.text = ""
        self._open: list[str] = []
        self._select = ""
        self.feed(text)
        self.text = " ".join(self.text.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag not in VOID:
            self._open.append(tag)
        if tag == "form":
            self.forms.append(Form(urljoin(self.url, given.get("action", ""))))
        elif tag == "img" and given.get("alt", "").startswith("QR"):
            self.codes.append(given.get("src", ""))
        elif tag == "select":
            self._select = given.get("name", "")
        elif tag == "option" and self.forms and ("selected" in given or self._select not in self.forms[-1].fields):
            self.forms[-1].fields[self._select] = given.get("value", "")
        elif tag in ("input", "button") and "name" in given:
            self._take(tag, given)
        self.to_copy += "readonly" in given

    def _take(self, tag: str, given: dict[str, str]) -> None:
        """What stands in a form. Of choices the checked one counts, of buttons the first."""
        chosen = given.get("type") not in ("radio", "checkbox") or "checked" in given
        if self.forms and chosen and not (tag == "button" and given["name"] in self.forms[-1].fields):
            self.forms[-1].fields[given["name"]] = given.get("value", "")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += f" {data}"
        if "h1" in self._open:
            self.heading += data.strip()

    def with_action(self, end: str) -> list[Form]:
        """The forms whose address ends so."""
        return [form for form in self.forms if urlsplit(form.action).path.endswith(end)]


def load(url: str, form: dict[str, str] | None = None) -> Page:
    """A page, or what a form leads to."""
    body = None if form is None else urlencode(form).encode()
    try:
        with BROWSER.open(Request(url, body, {"Accept-Language": "en", "Accept": "text/html"}), timeout=60) as answer:
            return Page(answer.url, answer.read().decode(), int(answer.headers.get("Refresh", "0")))
    except HTTPError as refused:
        page = Page(url, refused.read().decode(errors="replace"), 0)
        sys.exit(f"{refused.code} {page.heading or refused.reason}: {page.text[:300]}")


def followed(page: Page) -> Page:
    """The page when it does not renew itself any more."""
    since, told = time.monotonic(), ""
    while page.wait:
        if page.heading != told:
            print("order:", told := page.heading)
        if time.monotonic() - since > PATIENCE:
            sys.exit(f"after {PATIENCE} seconds the order still says: {page.heading}")
        time.sleep(min(page.wait, 1))
        page = load(page.url)
    return page


def paid(checkout: Page, email: str) -> Page:
    """The payment page of the simulated processor, and the page that it leads back to."""
    form = next((form for form in checkout.forms if form.fields.get("do") == "pay"), None)
    if form is None:
        sys.exit(f"the payment page at {urlsplit(checkout.url).netloc} is no simulated one, so nothing is paid")
    if "email" in form.fields:
        form.fields["email"] = email
    print("payment: with a test card")
    return followed(load(form.action, form.fields))


def bought(shop: str, wanted: str | None, email: str) -> Page:
    """The page of an order that was paid for."""
    page = load(shop)
    offers = {form.fields["plan"]: form for form in page.with_action("/checkout")}
    print(f"shop: {page.heading}; on sale: {', '.join(offers) or 'nothing'}")
    plan = wanted or next(iter(offers), "")
    if plan not in offers:
        sys.exit(f"{plan or 'a plan'} is not on sale at {shop}")
    print("choice:", plan)
    return paid(load(offers[plan].action, offers[plan].fields), email)


def show_esim(order: Page) -> str:
    """What the buyer has now, but for what opens it. The number of its SIM."""
    number = ICCID.search(order.text)
    if not order.codes or number is None:
        sys.exit(f"there is no eSIM: {order.heading}")
    print(f"eSIM: {order.heading}; a QR code, {order.to_copy} fields to copy, SIM number ending in {number[0][-4:]}")
    return number[0]


def show_usage(order: Page) -> None:
    """How much data is left."""
    found = LEFT.search(order.text)
    print("usage:", found[0].replace("\xa0", " ") if found else "is not known at the moment")


def control(network: str, name: str, body: dict[str, Any] | None = None) -> Any:
    """The simulated network's own interface."""
    sent = None if body is None else json.dumps(body).encode()
    with urlopen(Request(f"{network}/control/{name}", sent, {"Content-Type": "application/json"}), timeout=60) as answer:
        return json.loads(answer.read())


def travel(network: str, iccid: str, country: str) -> None:
    """The phone is switched on in a country, and uses data there."""
    there = control(network, f"networks?iso2={country}")["networks"][0]["networkId"]
    control(network, "attach", {"iccid": iccid, "networkId": there})
    control(network, "usage", {"iccid": iccid, "networkId": there, "usageType": DATA, "quantity": USED_BYTES})
    print(f"phone: on in {country.upper()}, {USED_BYTES // 1_000_000} MB used")


def add_data(order: Page, email: str) -> Page:
    """The first plan that can be added."""
    offers = {form.fields["plan"]: form for form in order.with_action("/top-up")}
    print("can be added:", ", ".join(offers) or "nothing")
    if not offers:
        return order
    plan, form = next(iter(offers.items()))
    print("choice:", plan)
    return paid(load(form.action, form.fields), email)


def close(order: Page) -> Page:
    """No more data can be added after it."""
    [form] = order.with_action("/cancel")
    page = load(form.action, form.fields)
    print("closed; can be added:", ", ".join(form.fields["plan"] for form in page.with_action("/top-up")) or "nothing")
    return page


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shop")
    parser.add_argument("--plan")
    parser.add_argument("--email", default="ada@example.com")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--network")
    parser.add_argument("--country", default="no")
    given = parser.parse_args()
    if not all(address is None or address.startswith("http") for address in (given.shop, given.network)):
        sys.exit(
            "Give the shop's address, which `serve` prints, such as http://127.0.0.1:8000/shop/demo; that of a network begins so, too."
        )
    try:
        visit(given)
    except URLError as error:
        sys.exit(f"No answer ({error.reason}): is `serve` running, and is {given.shop} the shop's address that it prints?")
    return 0


def visit(given: argparse.Namespace) -> None:
    """The whole way."""
    order = bought(given.shop, given.plan, given.email)
    iccid = show_esim(order)
    show_usage(order)
    if given.network:
        travel(given.network, iccid, given.country)
        show_usage(order := load(order.url))
    if not given.keep:
        show_usage(order := add_data(order, given.email))
        close(order)


if __name__ == "__main__":
    sys.exit(main())
