"""Every command of the page on the charging system, against a service with the simulated one."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from operations.catalogue import CATALOGUE
from registry.caller import Tier
from registry.limits import Limits
from tests.docs.blocks import blocks
from tests.docs.conftest import BRIDGE_SECRET
from tests.docs.reader import as_reader, done, find
from tests.harness.processes import ROOT, Running

PAGE = "upstream.md"
LINE = "8988303700000100286"
TAKEN = {"result": {"code": 0, "msg": "OK"}}
STARTS = (
    "reseller org list",
    'curl -s "',
    "id=msg_",
    "curl -s $RESELLER_URL/v1/sub",
    "curl -si",
    "reseller call get_sub",
)


@pytest.fixture(scope="module")
def organisation(place: Path, server: Running) -> Iterator[str]:
    assert server.organisation
    yield done(place, 'reseller org create "Acme Mobile"').strip()


@pytest.mark.long
def test_an_organisation_is_connected_in_each_way_and_disconnected(place: Path, organisation: str) -> None:
    listed, *said = done(place, find(STARTS[0], PAGE), organisation=organisation).splitlines()[-4:]
    assert listed == f"{organisation}\tfree\tAcme Mobile\tnot connected"
    ways = ("is connected to account 8101", "is connected with its own token", "is not connected")
    assert said == [f"{organisation} {way}" for way in ways]


def test_the_next_page_is_in_a_header(place: Path, server: Running) -> None:
    said = done(place, find(STARTS[4], PAGE), **as_reader(server)).strip()
    assert re.fullmatch(r'link: </v1/subscribers\?limit=3&fields=iccid&starting_after=\d+>; rel="next"', said)


def test_notifications_with_the_secret_and_with_a_signature_make_the_country_history(place: Path, server: Running) -> None:
    reader = {**as_reader(server), "SERVICE_BRIDGE_WEBHOOK_SECRET": BRIDGE_SECRET}
    assert json.loads(done(place, find(STARTS[1], PAGE), **reader)) == TAKEN
    assert json.loads(done(place, find(STARTS[2], PAGE), **reader)) == TAKEN
    history = json.loads(done(place, find(STARTS[3], PAGE), **as_reader(server)))["data"]
    entered = [(row["iccid"], row["country"], row["mnc"]) for row in history]
    assert {(LINE, "FR", "10"), (LINE, "DE", "02")} <= set(entered)


@pytest.mark.long
def test_the_calls_that_show_why_a_line_has_no_data_have_the_members_that_the_page_names(place: Path, server: Running) -> None:
    said = done(place, find(STARTS[5], PAGE), line=LINE, **as_reader(server))
    section = (ROOT / "docs" / PAGE).read_text().partition("## Why has this line no data?")[2].partition("\n## ")[0]
    rows = [row for row in section.splitlines() if row.startswith("| ") and not row.startswith("| Look at")]
    assert len(rows) == 8
    members = {name for row in rows for name in re.findall(r"`([a-z]+[A-Za-z0-9]*)`", "|".join(row.split("|")[1:3]))}
    members -= {"running", "assigned", "useAccountForCharging"}
    assert [name for name in sorted(members) if f'"{name}": ' not in said] == []
    assert {name for row in rows for name in re.findall(r"`(\w+_\w+)`", row.split("|")[3])} - set(CATALOGUE.operations) == set()


def test_the_burst_limits_are_those_of_the_tiers() -> None:
    limits, text = Limits(), " ".join((ROOT / "docs" / PAGE).read_text().split())
    speeds = [f"{limits.tiers[tier].burst_per_second:g}" for tier in (Tier.FREE, Tier.PRO, Tier.ENTERPRISE)]
    assert re.findall(r"free (\d+) calls a second, pro (\d+), enterprise (\d+)", text) == [tuple(speeds)]
    assert f"{limits.upstream_writes_per_second:g} changes a second at the charging system" in text


def test_every_command_of_the_page_is_run() -> None:
    assert [block.text for block in blocks("sh", document=PAGE) if not block.text.startswith(STARTS)] == []
