"""The rule of evidence by itself: success is one unclaimed line that shows the draw, failure is that nothing is left unexplained."""

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clients.ocs.packages import Package
from clients.ocs.subscribers import Subscriber
from clients.ocs.times import wire_time
from operations.ledger.evidence import IssuanceAccountState, decide_issuance, stock_lines_by_iccid
from storage.issuance import IssuanceRow
from storage.reconciliation import LedgerEntry
from storage.stock_snapshots import StockSnapshot
from tests.length import examples

SENT = 1_800_014_400.0
DAY, TEMPLATE = 86_400, 55010


def wire(at: float) -> str:
    return wire_time(datetime.fromtimestamp(at, UTC))


def issuance(key: str = "key", **known: object) -> IssuanceRow:
    """A draw of a package for 30 days, whose answer was lost."""
    row = IssuanceRow(
        organisation="org_a",
        key=key,
        operation="issue_esim_from_inventory",
        claim_key=key,
        principal="usr_a",
        account_id=8101,
        template_id=TEMPLATE,
        validity_days=30,
        period=None,
        intent=None,
        state="outcome_unknown",
        owner="rpl_a",
        stock="stk_a",
        iccid=None,
        held=None,
        replied=None,
        subscriber_id=None,
        sim_id=None,
        package_id=None,
        steps=None,
        note=None,
        dispatched=SENT,
        updated=SENT,
        clear_since=None,
    )
    return row._replace(**known)


def known_from(row: IssuanceRow) -> LedgerEntry:
    """What such a row tells of its ICCID."""
    return LedgerEntry(row.organisation, row.key, row.state, row.iccid or "", row.held, row.package_id)


def package(kind: str, id: int) -> Package:
    found: Package = {"subscriberprepaidpackageid": id, "templateId": TEMPLATE, "tsassigned": wire(SENT + 2)}
    dated: Package = {**found, "tsactivationutc": wire(SENT + 2), "tsexpirationutc": wire(SENT + 2 + 30 * DAY)}
    kinds: dict[str, Package] = {
        "exact": dated,
        "other template": {**dated, "templateId": TEMPLATE + 1},
        "other window": {**dated, "tsexpirationutc": wire(SENT + 2 + 7 * DAY)},
        "undated": found,
        "too early": {**dated, "tsassigned": wire(SENT - 3600)},
        "too late": {**dated, "tsassigned": wire(SENT + 2 * 3600)},
    }
    if kind == "no template":
        del dated["templateId"]
        return dated
    return kinds[kind]


KINDS = ("exact", "other template", "other window", "undated", "too early", "too late", "no template")


@dataclass(frozen=True, slots=True)
class Spot:
    """One line of the account: whether it was in stock, what is seen of it now, and who has it."""

    stocked: bool
    now: str
    kinds: tuple[str, ...]
    holder: str
    fresh: bool
    behind: float = 0.0
    """Seconds by which the clock that says when a fresh one was taken is behind ours."""

    @property
    def is_ours_by_rule(self) -> bool:
        """In stock at the look, gone from it, nobody's, and with the one package that was asked for."""
        return self.stocked and self.now == "used" and self.holder == "nobody" and self.kinds.count("exact") == 1


SPOTS = st.lists(
    st.builds(
        Spot,
        stocked=st.booleans(),
        now=st.sampled_from(["used", "used", "free", "gone"]),
        kinds=st.lists(st.sampled_from(KINDS), max_size=2).map(tuple),
        holder=st.sampled_from(["nobody", "nobody", "somebody"]),
        fresh=st.booleans(),
    ),
    max_size=5,
)


def scene_of(spots: list[Spot], *, look_complete: bool, complete: bool) -> tuple[StockSnapshot, IssuanceAccountState, list[LedgerEntry]]:
    """The account, the look before the draw, and what the ledger knows."""
    lines: dict[str, Subscriber] = {}
    packages: dict[str, list[Package]] = {}
    known: list[LedgerEntry] = []
    for place, spot in enumerate(spots):
        iccid = f"89{place}"
        if spot.now != "gone":
            moment = wire(SENT + 2 - spot.behind) if spot.fresh else wire(SENT - 30 * DAY)
            lines[iccid] = {
                "imsiList": [{"iccid": iccid}],
                "sim": {"status": "FREE"} if spot.now == "free" else {"status": "AFFECTED", "affectationDateUtc": moment},
            }
            packages[iccid] = [package(kind, 100 * place + at) for at, kind in enumerate(spot.kinds)]
        if spot.holder == "somebody":
            known.append(known_from(issuance(f"other-{place}", state="issued", iccid=iccid, held=iccid, package_id=100 * place)))
    free = "\n".join(f"89{place}" for place, spot in enumerate(spots) if spot.stocked)
    return (
        StockSnapshot("stk_a", 8101, SENT - 1, int(look_complete), free, ""),
        IssuanceAccountState(stock_lines_by_iccid(list(lines.values())), complete, packages),
        known,
    )


@pytest.mark.long
@settings(max_examples=examples(200), deadline=None)
@given(spots=SPOTS, look_complete=st.booleans(), complete=st.booleans(), replied=st.booleans())
def test_only_one_unclaimed_line_that_shows_the_draw_is_success_and_only_nothing_unexplained_is_failure(
    spots: list[Spot], look_complete: bool, complete: bool, replied: bool
) -> None:
    row = issuance(replied="8900" if replied else None)
    look, scene, known = scene_of(spots, look_complete=look_complete, complete=complete)
    verdict = decide_issuance(row, look, scene, known)
    ours = [f"89{place}" for place, spot in enumerate(spots) if spot.is_ours_by_rule]
    if verdict.kind == "found":
        assert verdict.candidate is not None
        assert [verdict.candidate.iccid] == ours
        assert verdict.candidate.package == package("exact", verdict.candidate.package.get("subscriberprepaidpackageid", 0))
    if verdict.kind == "clear":
        assert look_complete
        assert complete
        assert not replied
        assert not ours
        loose = [spot for spot in spots if spot.stocked and spot.holder == "nobody" and spot.now != "free"]
        assert all(spot.now == "used" and spot.kinds and set(spot.kinds) == {"other template"} for spot in loose)


def judged(spots: list[Spot], *known: IssuanceRow, returned: str = "") -> tuple[str, str | None]:
    """The verdict, and on which line."""
    look, scene, others = scene_of(spots, look_complete=True, complete=True)
    verdict = decide_issuance(issuance(), look._replace(returned=returned), scene, [*others, *map(known_from, known)])
    return verdict.kind, verdict.candidate and verdict.candidate.iccid


DRAWN = Spot(True, "used", ("exact",), "nobody", True)
IN_STOCK = Spot(True, "free", (), "nobody", False)


@pytest.mark.parametrize("state", ["rolled_back", "released", "rollback_unknown", "rollback_pending"])
def test_an_esim_that_was_given_back_after_the_look_may_be_the_one_that_was_drawn(state: str) -> None:
    """Another replica gave it back while this one was about to draw: nothing in the look tells of it, the ledger does."""
    late = Spot(False, "used", ("exact",), "nobody", True)
    held = "890" if state.startswith("rollback") else None
    former = issuance("former", state=state, iccid="890", held=held, package_id=7, updated=SENT + 1)
    assert judged([late, IN_STOCK], former) == ("found", "890")


def test_the_package_of_a_row_that_is_being_rolled_back_is_its_own() -> None:
    former = issuance("former", state="rollback_unknown", iccid="890", held="890", package_id=0, updated=SENT + 1)
    assert judged([Spot(False, "used", ("exact",), "nobody", False), IN_STOCK], former) == ("clear", None)


def test_an_esim_that_the_look_saw_in_stock_though_a_row_had_it_may_be_the_one_that_was_drawn() -> None:
    former = issuance("former", state="issued", iccid="890", held="890", package_id=7, updated=SENT - DAY)
    assert judged([DRAWN, IN_STOCK], former) == ("clear", None)
    assert judged([DRAWN, IN_STOCK], former, returned="890 org_a former") == ("found", "890")


def test_a_line_that_came_into_stock_after_the_look_is_no_proof_but_hinders_the_proof_of_failure() -> None:
    assert judged([IN_STOCK, Spot(False, "used", ("exact",), "nobody", True)]) == ("unclear", None)
    assert judged([DRAWN, Spot(False, "used", ("exact",), "nobody", True)]) == ("found", "890")
    assert judged([IN_STOCK, Spot(False, "used", ("exact",), "nobody", False)]) == ("clear", None)


def test_a_clock_that_is_up_to_20_minutes_behind_ours_hides_no_line_that_came_into_stock_after_the_look() -> None:
    spots = [Spot(False, "used", ("exact",), "nobody", True, behind=minutes * 60) for minutes in (3, 19, 21)]
    assert [judged([IN_STOCK, spot])[0] for spot in spots] == ["unclear", "unclear", "clear"]


@pytest.mark.parametrize(
    ("kinds", "verdict"),
    [
        (("exact",), "found"),
        (("other template",), "clear"),
        ((), "unclear"),
        (("other window",), "unclear"),
        (("undated",), "unclear"),
        (("too late",), "unclear"),
        (("no template",), "unclear"),
        (("exact", "exact"), "unclear"),
        (("exact", "other template"), "found"),
    ],
)
def test_what_a_line_shows_by_itself(kinds: tuple[str, ...], verdict: str) -> None:
    assert judged([Spot(True, "used", kinds, "nobody", True), IN_STOCK])[0] == verdict
