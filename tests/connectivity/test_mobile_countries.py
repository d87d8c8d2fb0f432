"""The table of mobile countries, against the one of python-stdnum."""

from collections import Counter

import pytest
from inline_snapshot import snapshot
from stdnum import numdb

from operations.vocabulary import COUNTRY_BY_MCC, NETWORK_TABLE, code_pairs, network_country


def stdnum_countries() -> dict[str, Counter[str]]:
    """By mobile country code: how many of its networks are in which country."""
    found: dict[str, Counter[str]] = {}
    for _, code, _, _, networks in numdb.get("imsi").prefixes:
        found[code] = Counter(str(network[3]["cc"]).upper() for network in networks if "cc" in network[3])
    return found


def test_every_code_agrees_with_stdnums_majority() -> None:
    theirs = {code: countries.most_common(1)[0][0] for code, countries in stdnum_countries().items() if countries}
    ours = {code: network_country(code, None) for code in theirs}
    # 340 spans several countries; of 505's networks theirs places only the one of Norfolk Island.
    assert {code: (ours[code], theirs[code]) for code in theirs if ours[code] != theirs[code]} == {"340": (None, "GF"), "505": ("AU", "NF")}


def test_codes_that_only_we_have_are_assigned_and_hardly_used() -> None:
    known = {code for code, countries in stdnum_countries().items() if countries}
    extra = {code: COUNTRY_BY_MCC[code] for code in sorted(set(COUNTRY_BY_MCC) - known)}
    assert extra == snapshot(
        {"225": "VA", "315": "US", "332": "VI", "406": "IN", "430": "AE", "431": "AE", "461": "CN", "534": "MP", "535": "GU"}
    )


def test_about_240_codes_are_known() -> None:
    assert 220 <= len(COUNTRY_BY_MCC) <= 260


@pytest.mark.parametrize(
    ("mcc", "mnc"), [("901", "28"), ("001", "01"), ("999", None), ("340", "01"), ("362", None), ("289", "67"), ("647", "10")]
)
def test_a_code_that_tells_no_country_answers_none(mcc: str, mnc: str | None) -> None:
    assert network_country(mcc, mnc) is None


@pytest.mark.parametrize(
    ("mcc", "mnc", "country"),
    [
        ("310", "260", "US"),
        ("310", "140", "GU"),
        ("338", "05", "LC"),
        ("338", "050", "TC"),
        ("340", "12", "MQ"),
        ("234", "55", "GG"),
        ("234", "055", "GG"),
        ("425", "05", "PS"),
        ("425", "01", "IL"),
        ("208", "01", "FR"),
    ],
)
def test_a_network_abroad_answers_its_own_country(mcc: str, mnc: str, country: str) -> None:
    assert network_country(mcc, mnc) == country


def test_no_network_stands_in_the_table_twice() -> None:
    codes = [code for code, _ in code_pairs(NETWORK_TABLE)]
    assert len(codes) == len(set(codes))
