"""The table of mobile countries, against the one of python-stdnum."""

from collections import Counter

import pytest
from stdnum import numdb

from operations.services.mobile_countries import ABROAD, COUNTRIES, country_of, pairs


def stdnum_countries() -> dict[str, Counter[str]]:
    """By mobile country code: how many of its networks are in which country."""
    found: dict[str, Counter[str]] = {}
    for _, code, _, _, networks in numdb.get("imsi").prefixes:
        found[code] = Counter(str(network[3]["cc"]).upper() for network in networks if "cc" in network[3])
    return found


def test_every_code_agrees_with_stdnums_majority() -> None:
    theirs = {code: countries.most_common(1)[0][0] for code, countries in stdnum_countries().items() if countries}
    ours = {code: country_of(code, None) for code in theirs}
    assert {code: (ours[code], theirs[code]) for code in theirs if ours[code] != theirs[code]} == {"340": (None, "GF")}


def test_codes_that_only_we_have_are_assigned_and_unused() -> None:
    known = {code for code, countries in stdnum_countries().items() if countries}
    assert sorted(set(COUNTRIES) - known) == []


def test_about_240_codes_are_known() -> None:
    assert 220 <= len(COUNTRIES) <= 260


@pytest.mark.parametrize(
    ("mcc", "mnc"), [("901", "28"), ("001", "01"), ("999", None), ("340", "01"), ("362", None), ("289", "67"), ("647", "10")]
)
def test_a_code_that_tells_no_country_answers_none(mcc: str, mnc: str | None) -> None:
    assert country_of(mcc, mnc) is None


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
    assert country_of(mcc, mnc) == country


def test_no_network_stands_in_the_table_twice() -> None:
    codes = [code for code, _ in pairs(ABROAD)]
    assert len(codes) == len(set(codes))
