"""`reseller storefront`: a shop for products that are there."""

from pathlib import Path

import orjson
import pytest

from tests.cli.reseller import printed, refused

pytestmark = pytest.mark.long

PRODUCT = ("--validity-days", "30", "--countries", "NO", "--package-template-id", "55010")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("place")
    printed("org", "create", "Fjord", "--tier", "pro", "--email", "ada@fjord.example", cwd=place)
    return place


def product(place: Path, name: str, *, currency: str = "EUR") -> str:
    words = ("--name", name, "--data-mb", "1000", "--price-cents", "790", "--currency", currency, *PRODUCT)
    return orjson.loads(printed("call", "create_connectivity_product", *words, cwd=place))["id"]


def shops(place: Path) -> str:
    return printed("storefront", "list", cwd=place)


def test_a_shop_is_opened_for_products_in_one_go(place: Path) -> None:
    one, same, other = product(place, "Nordic 1 GB"), product(place, "Nordic 1 GB"), product(place, "Japan")
    words = ("--slug", "fjord-travel", "--from-product", one, "--from-product", same, "--from-product", other, "--publish")
    id = printed("storefront", "create", "Fjord Travel", *words, cwd=place).strip()
    assert f"{id}\tfjord-travel\tpublished\tEUR\tFjord Travel\n" in shops(place)
    hosted = orjson.loads(printed("call", "get_hosted_storefront", "--slug", "fjord-travel", cwd=place))
    assert [plan["slug"] for plan in hosted["plans"]] == ["nordic-1-gb", "nordic-1-gb-1", "japan"]
    whole = orjson.loads(printed("call", "get_storefront", "--id", id, cwd=place))
    assert [plan["product_id"] for plan in whole["plans"]] == [one, same, other]


def test_without_more_words_it_is_a_draft_whose_slug_is_its_name(place: Path) -> None:
    id = printed("storefront", "create", "Fjord Winter & Ski", "--currency", "CHF", cwd=place).strip()
    assert f"{id}\tfjord-winter-ski\tdraft\tCHF\tFjord Winter & Ski\n" in shops(place)
    assert orjson.loads(printed("storefront", "list", "--json", cwd=place))["data"][0]["id"] == id


def test_nothing_is_made_for_products_that_do_not_fit(place: Path) -> None:
    euros, dollars, before = product(place, "One"), product(place, "Two", currency="USD"), shops(place)
    cases = {
        "no product with this id": ("--from-product", "cnp_" + "0" * 26),
        "--from-product": ("--from-product", euros, "--from-product", dollars),
        "priced in EUR": ("--from-product", euros, "--currency", "GBP"),
        "--currency": (),
    }
    for text, words in cases.items():
        code, message = refused("storefront", "create", "Shop", "--slug", "a-shop", *words, cwd=place)
        assert (code in (1, 2), text in message) == (True, True), message
    code, message = refused("storefront", "create", "\u5e97", "--from-product", euros, cwd=place)
    assert code == 2 and "--slug" in message
    assert shops(place) == before


def test_a_refused_plan_says_which_shop_was_made(place: Path) -> None:
    hidden = product(place, "Safe \u202egnp")
    code, message = refused("storefront", "create", "Half", "--slug", "half-made", "--from-product", hidden, "--publish", cwd=place)
    assert code == 1 and "name" in message
    (line,) = [line for line in shops(place).splitlines() if "\thalf-made\t" in line]
    assert f"the shop {line.split()[0]} was made, as a draft" in message
    assert "\tdraft\t" in line
