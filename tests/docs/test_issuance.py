"""Every command of the page on issuing, against a service on a simulated network that can be told to lose an answer."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import httpx
import pytest

from operations.caches.stock import SNAPSHOT_FRESH_SECONDS
from operations.ledger.evidence import DRAW_CLOCK_SKEW, EFFECT_WINDOW
from operations.ledger.issuance import MANUAL_RECONCILIATION, NO_INVENTORY_CODE, OUTCOME_UNKNOWN
from operations.ledger.reconciliation import ISSUANCE_LATER_SECONDS, ISSUANCE_PATIENCE_SECONDS, ISSUANCE_SOON_SECONDS
from operations.ledger.rollback import LineHasPackages, NotIssued
from storage.issuance import IssuanceState
from storage.replicas import REPLICA_LEASE_SECONDS
from tests.cli.network import network
from tests.docs.blocks import blocks
from tests.docs.reader import as_reader, done, find
from tests.harness.processes import ROOT, Running, running
from transports.worker.chores import RECOVERY_SECONDS

pytestmark = pytest.mark.long

PAGE = "issuance.md"
ISSUE, LIST, FAULT, FAILED, BACK, ROLLED_BACK = STARTS = (
    'curl -s "$RESELLER_URL/v1/subscribers/issue-from-inventory"',
    "reseller issuance list\n",
    "curl -s $SANDBOX/control/faults",
    "reseller issuance settle order-1044",
    "issuance=$RESELLER_URL",
    "reseller issuance settle order-1045",
)
PATIENCE = 60


class Shop(NamedTuple):
    """Somebody who follows the page: the service, the network behind it, and a shell that knows both."""

    service: Running
    network: httpx.Client
    place: Path
    settings: dict[str, str]

    def run(self, text: str) -> str:
        known = {"SANDBOX": str(self.network.base_url), "organisation": self.service.organisation, "SERVICE_DATA": "issuance"}
        return done(self.place, text, **as_reader(self.service), **known, **self.settings)

    def lose(self, method: str, **fault: bool) -> None:
        self.network.post("/control/faults", json={"method": method, **fault}).raise_for_status()

    def listed(self, text: str) -> dict[str, dict[str, Any]]:
        decoder, said, rows = json.JSONDecoder(), self.run(text).strip(), {}
        while said:
            shown, end = decoder.raw_decode(said)
            rows |= {row["key"]: row for row in shown["data"]}
            said = said[end:].strip()
        return rows


@pytest.fixture(scope="module")
def shop(place: Path) -> Iterator[Shop]:
    with network(place, "--lines", "400") as (upstream, _):
        settings = {"SERVICE_OCS_URL": f"{str(upstream.base_url).rstrip('/')}/v1", "SERVICE_OCS_TOKEN": "sandbox-7001-token"}
        with running(place / "issuance", settings) as service:
            shop = Shop(service, upstream, place, settings)
            shop.run('reseller org connect "$organisation" --account 8101')
            yield shop


def order(number: int) -> str:
    return find(ISSUE, PAGE).replace("order-1042", f"order-{number}")


def test_an_esim_is_issued_once_and_taken_back(shop: Shop) -> None:
    first, again = shop.run(find(ISSUE, PAGE)), shop.run(find(ISSUE, PAGE))
    assert first == again
    esim = json.loads(first)["data"]
    assert esim["status"] == "issued" and esim["activationCode"]
    row = json.loads(shop.run(find(BACK, PAGE)))["data"]
    assert (row["status"], row["iccid"]) == ("rolled_back", esim["iccid"])
    assert json.loads(shop.run(find(ISSUE, PAGE)))["code"] == "issuance_taken_back"


def test_a_lost_answer_is_found_out_by_itself(shop: Shop) -> None:
    fault, issue = find(FAULT, PAGE).split("\n", 1)
    assert json.loads(shop.run(fault))["faults"][0]["drop_after"] is True
    assert json.loads(shop.run(issue))["code"] == OUTCOME_UNKNOWN
    until = time.monotonic() + PATIENCE
    while shop.listed("reseller issuance list --limit 1")["order-1043"]["state"] != "issued":
        assert time.monotonic() < until
    assert json.loads(shop.run(issue))["data"]["status"] == "issued"


def test_a_person_settles_a_draw_that_never_was_and_a_roll_back_that_was_cut_off(shop: Shop) -> None:
    back = find(BACK, PAGE).replace("order-1042", "order-1045")
    shop.lose("affectPackageToSubscriber", drop_before=True)
    assert json.loads(shop.run(order(1044)))["code"] == OUTCOME_UNKNOWN
    shop.run(order(1045))
    shop.lose("changeSimStatus", drop_before=True)
    said = shop.run(back)
    assert json.loads(said)["code"] == MANUAL_RECONCILIATION and '"status":"rollback_unknown"' in said
    shown = shop.listed(find(LIST, PAGE))
    assert (shown["order-1044"]["state"], shown["order-1044"]["window"]) == ("outcome_unknown", "30 days")
    assert "the worker looks again" in shown["order-1044"]["next"] and "look at the line" in shown["order-1045"]["next"]
    for settle, number, state in ((FAILED, 1044, "failed"), (ROLLED_BACK, 1045, "rolled_back")):
        assert shop.run(find(settle, PAGE)) == f"order-{number} of {shop.service.organisation} is {state}\n"
    assert "drew no eSIM for this call" in json.loads(shop.run(order(1044)))["error"]
    assert json.loads(shop.run(back))["data"]["status"] == "rolled_back"


def test_every_command_of_the_page_is_run() -> None:
    assert [block.text for block in blocks("sh", document=PAGE) if not block.text.startswith(STARTS)] == []


def test_the_page_names_every_state_and_answer() -> None:
    text = (ROOT / "docs" / PAGE).read_text()
    assert [state for state in get_args(IssuanceState) if f"`{state}`" not in text] == []
    codes = (
        OUTCOME_UNKNOWN,
        MANUAL_RECONCILIATION,
        NO_INVENTORY_CODE,
        NotIssued.code,
        LineHasPackages.code,
        "idempotency_in_progress",
        "idempotency_key_reused",
    )
    assert [code for code in codes if f"`{code}`" not in text] == []


def test_the_figures_of_the_page_are_those_of_the_code() -> None:
    text = " ".join((ROOT / "docs" / PAGE).read_text().split())
    minutes = (int(DRAW_CLOCK_SKEW.total_seconds() / 60), int((EFFECT_WINDOW + DRAW_CLOCK_SKEW).total_seconds() / 60))
    assert f"from {minutes[0]} minutes before to {minutes[1]} after" in text
    assert f"for {int(EFFECT_WINDOW.total_seconds() / 60)} minutes nothing in the account shows a draw" in text
    assert f"({minutes[0]} minutes past its end)" in text
    assert f"for {ISSUANCE_PATIENCE_SECONDS // 3600} hours after the call" in text
    assert (ISSUANCE_SOON_SECONDS, ISSUANCE_LATER_SECONDS, EFFECT_WINDOW.total_seconds()) == (30, 300, 900)
    assert "at once, then every 30 seconds for half an hour, then every five minutes" in text
    assert SNAPSHOT_FRESH_SECONDS == 5 and "the draws of the next five seconds" in text
    assert f"a lease in the database of {REPLICA_LEASE_SECONDS:g} seconds" in text
    assert f"by {REPLICA_LEASE_SECONDS + RECOVERY_SECONDS:g} seconds after a kill" in text
