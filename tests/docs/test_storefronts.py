"""Every command of the page on shops, in their order, against a service on the embedded default; and its figures are those of the code."""

import re
from pathlib import Path
from typing import get_args

import httpx
import pytest

from operations.catalogue import CATALOGUE
from operations.languages import LANGUAGES_FOLDER, spoken_languages
from operations.storefronts.sales.checkout import CHECKOUT_LOOK_SECONDS, CHECKOUT_OPEN_SECONDS, ReadinessReason
from operations.storefronts.sales.order_fulfilment import FULFILMENT_PATIENCE_SECONDS
from operations.storefronts.sales.order_fulfilment import REFUND_PATIENCE_SECONDS as REFUND_SECONDS
from operations.storefronts.sales.top_up_sender import TOP_UP_CLEAR_SECONDS
from operations.storefronts.storefront_plans import STOREFRONT_PLANS_LIMIT
from operations.storefronts.storefronts import LOGO_LENGTH_LIMIT, STOREFRONTS_LIMIT
from registry.limits import Limits
from registry.operation import Auth
from storage.orders import OrderStatus
from tests.docs.blocks import blocks
from tests.docs.conftest import DOCS_SHOP_KEY
from tests.docs.reader import as_reader, done, find
from tests.harness.processes import ROOT, Running
from transports.worker.retention import UNPAID_ORDERS_SECONDS

PAGE = "storefronts.md"
VISIT = "python examples/shop_visit.py"


@pytest.mark.long
def test_the_page_leads_from_a_new_shop_to_a_buyer_who_is_erased(server: Running, place: Path) -> None:
    whole = "\n".join(block.text for block in blocks("sh", document=PAGE)[1:])
    said = done(place, whole, **as_reader(server), SERVICE_STOREFRONT_API_KEY=DOCS_SHOP_KEY)
    assert '"slug":"nordics-1gb"' in said and '"status":"published"' in said
    assert '"ready":true' in said
    assert "eSIM: Your eSIM is ready; a QR code" in said
    assert '"status": "ready"' in said
    assert '"usedBytes":0' in said
    assert '"activation_code":"LPA:1$' in said
    assert '"erased":2' in said
    japan = httpx.get(f"{server.base_url}/api/hosted/fjord-japan").json()
    assert [plan["name"] for plan in japan["plans"]] == ["Japan 3 GB"]


def test_the_visit_to_the_demo_is_that_of_the_tour() -> None:
    assert find(VISIT, "tour.md") == blocks("sh", document=PAGE)[0].text


def text() -> str:
    return (ROOT / "docs" / PAGE).read_text()


def test_the_page_names_every_reason_every_status_and_every_language() -> None:
    assert [name for name in (*get_args(ReadinessReason), *get_args(OrderStatus)) if f"`{name}`" not in text()] == []
    assert LANGUAGES_FOLDER.relative_to(ROOT).as_posix() + "/" in text()
    assert [language for language in spoken_languages() if f"`{language}.toml`" not in text()] == []


def test_the_page_names_every_call_of_a_shops_own_server_and_whether_it_needs_the_key() -> None:
    kinds = {Auth.PUBLIC: "not asked for", Auth.STOREFRONT: "always", Auth.STOREFRONT_OPEN: "where it is set"}
    told = {
        path: kind for paths, kind in re.findall(r"^\| (`[A-Z]+ /api/.*) \| ([a-z ]+) \|$", text(), re.MULTILINE) for path in calls(paths)
    }
    declared = {f"{o.method} {o.path}": kinds[o.auth] for o in CATALOGUE.operations.values() if o.path.startswith("/api/")}
    assert told == declared


def calls(cell: str) -> list[str]:
    """`GET /a/{b}`, `/c`: two calls, the second of which goes on from the first."""
    names = [re.sub(r"\?.*", "", name) for name in re.findall(r"`((?:[A-Z]+ )?/[^`]*)`", cell)]
    return [name if " " in name else names[0] + name for name in names]


def test_the_figures_of_the_page_are_those_of_the_code() -> None:
    limits = Limits()
    told = (
        ((STOREFRONTS_LIMIT, STOREFRONT_PLANS_LIMIT), "plans of a shop | 100, 250", (100, 250)),
        (UNPAID_ORDERS_SECONDS, "forgotten after 30 days", 30 * 86_400),
        (REFUND_SECONDS, "under the same key, for 20 hours", 20 * 3600),
        (CHECKOUT_LOOK_SECONDS, "after ten minutes", 600),
        (CHECKOUT_OPEN_SECONDS, "can be paid for an hour", 3600),
        (FULFILMENT_PATIENCE_SECONDS, "it is tried again for an hour", 3600),
        (TOP_UP_CLEAR_SECONDS, "a top-up within fifteen", 900),
        (LOGO_LENGTH_LIMIT, "at most 32 KiB", 32 * 1024),
        (limits.orders_per_minute, "begins | 10 a minute", 10),
        (limits.public_per_minute, "from one network address | 60 a minute", 60),
        (limits.upstream_writes_per_second, "10 a second for each organisation", 10),
    )
    page = " ".join(text().split())
    assert [words for number, words, meant in told if number != meant or words not in page] == []
