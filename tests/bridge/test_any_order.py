"""Any order, repetition and mixture of reports, with the moment at which the intent gets its eSIM anywhere among them, tells the same."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from operations.connectivity.plans import TEST_PLANS
from operations.ledger.esims import DrawnEsim
from operations.ledger.issuance import record_issued_esim
from operations.ledger.issuance_targets import IntentTarget
from storage.engine.sql import Connection
from storage.intents import IntentRow
from storage.issuance import NewIssuance, begin_issuance
from tests.bridge.operator import Operator, open_bridge_operator, used_of
from tests.bridge.pushing import place
from tests.world import NOON

MB = 1_000_000
PLAN = {**TEST_PLANS["test_eu_1gb"], "id": "cnp_live", "livemode": True}
BEFORE, AFTER = NOON - 3600, NOON + 3600  # the draw is at noon, and now is two hours later
COUNTRIES = {"208": "FR", "262": "DE", "244": "FI"}


class Report(NamedTuple):
    """One report: by which way, how many MB or which country, and when it happened."""

    way: str
    number: int
    late: bool = False

    @property
    def at(self) -> float:
        return (BEFORE if self.late else AFTER) + self.number % 60


WAYS = ("push", "line", "total", "seen", "located")
REPORTS = st.builds(Report, st.sampled_from(WAYS), st.integers(1, 1100), st.booleans()).filter(
    lambda report: not (report.way == "push" and report.late)
)


@pytest.fixture
async def operator(tmp_path: Path) -> AsyncGenerator[Operator]:
    async with open_bridge_operator(tmp_path) as operator:
        operator.world.clock.advance(2 * 3600)
        yield operator


class Draw(NamedTuple):
    """One draw that was sent at noon: the answer is not there yet."""

    intent: str
    iccid: str
    package: int


async def sent(operator: Operator, number: int, at: float = NOON) -> Draw:
    made = Draw(operator.world.ids.new("cni_"), f"8988303000{number:09}", number)

    def begin(connection: Connection) -> None:
        target = target_of(operator, made)
        target.begin(connection)
        owner = operator.world.pipeline.deps.replica
        row = NewIssuance(
            operator.me.organisation,
            made.intent,
            "create_connectivity_intent",
            None,
            "usr_1",
            8101,
            1,
            None,
            None,
            made.intent,
            owner,
            "l",
            "s",
        )
        begin_issuance(connection, row=row, now=at)

    await operator.world.store.write(begin)
    return made


def target_of(operator: Operator, made: Draw) -> IntentTarget:
    plan = orjson.dumps(PLAN).decode()
    intent = IntentRow(made.intent, operator.me.organisation, "processing", 1, "cnp_live", plan, "{}", None, None, None, int(NOON))
    return IntentTarget(intent, False, 201, operator.world.pipeline.deps.keyring, operator.world.ids)


async def answer(operator: Operator, made: Draw) -> None:
    """The draw's answer comes, or reconciliation finds it; a second time changes nothing."""
    esim = DrawnEsim(made.iccid, "smdp.example", "CODE", "LPA:1$smdp.example$CODE", 7, 8, made.package, None)
    await operator.world.store.write(
        record_issued_esim,
        target=target_of(operator, made),
        organisation=operator.me.organisation,
        key=made.intent,
        esim=esim,
        now=operator.world.clock.now(),
    )


async def tell(operator: Operator, made: Draw, report: Report) -> None:
    code = list(COUNTRIES)[report.number % len(COUNTRIES)]
    if report.way == "push":
        await operator.push(used_of(made.package, report.number * MB, total=0))
    elif report.way == "line":
        await operator.ingest(f"{made.intent}-{report}", made.iccid, report.number * MB, report.at)
    elif report.way == "total":
        await operator.observe("package.usage", made.iccid, report.at, used_bytes=report.number * MB)
    elif report.way == "seen":
        await operator.observe("network.attach", made.iccid, report.at, mcc=code, mnc="01")
    else:
        stamp = f"2027-01-15T{'11' if report.late else '13'}:00:{report.number % 60:02}"
        await operator.push(place(made.iccid, int(code), 1, stamp))


def expected(reports: Sequence[Report]) -> list[str]:
    """What must have been told in the end, whatever the order: each once."""
    counted = {report for report in reports if not report.late}
    lines = sum(report.number for report in counted if report.way == "line")
    used = max([lines, *(report.number for report in counted if report.way in ("push", "total"))])
    told = [str(percent) for percent in (50, 80, 100) if used * 100 >= percent * 1000]
    attached = ["attached"] if any(report.way in ("seen", "located") for report in counted) else []
    return sorted(["esim.issued", *told, *attached])


@st.composite
def courses(draw: st.DrawFn) -> list[Report | None]:
    """Reports, some of them twice, in any order; None: the answer, which may come twice as well."""
    reports = draw(st.lists(REPORTS, max_size=8))
    again = draw(st.lists(st.sampled_from(reports), max_size=4)) if reports else []
    return draw(st.permutations([*[None] * draw(st.integers(1, 2)), *reports, *again]))


@pytest.mark.long
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(steps=[Report("total", 900, late=True), Report("total", 600), None], older=True)
@example(steps=[Report("seen", 1), Report("seen", 2, late=True), None], older=True)
@given(steps=courses(), older=st.booleans())
async def test_any_order_of_reports_around_the_answer_tells_each_thing_once(
    operator: Operator, steps: list[Report | None], older: bool
) -> None:
    """With `older`, another draw has been under way for longer, so that reports of a previous owner are kept as well."""
    operator.world.clock.advance(61)  # what an earlier example pushed is forgotten
    number = operator.world.ids.count
    other = await sent(operator, number + 500_000, NOON - 7200) if older else None
    made = await sent(operator, number)
    for step in steps:
        await (answer(operator, made) if step is None else tell(operator, made, step))
    told = await operator.told(made.intent)
    reports = [step for step in steps if step is not None]
    assert sorted("attached" if each in COUNTRIES.values() else str(each) for each in told) == expected(reports)
    if other is not None:
        await answer(operator, other)
        assert await operator.told(other.intent) == ["esim.issued"]
