"""Verdicts on the lines of a fleet: which lines are to be judged now, what was found of them, and when time alone may change it."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import Command, Connection, Query, bound_list, first_row, pack_rows, runs_in_thread, unindexed
from storage.fleet_figures import LineFigures, record_figures
from storage.fleet_line_news import (
    EndingNews,
    FleetBaseline,
    LineBaseline,
    LineNews,
    ProblemNews,
    baseline_of_fleet,
    baselines_of_lines,
    put_line_baselines,
)
from storage.fleet_lines import FLEET_IS_CURRENT, FLEET_LINE, FLEET_LINE_DETAIL, LINE_IS_THERE, OF_FLEET, OF_FLEET_LINE
from storage.fleet_problems import OpenProblem, ProblemChanges, ProblemState, open_problems_of_line, record_problems
from storage.fleet_readings import LineWork, work_of_lines
from storage.fleet_usage import FleetNetworkRow, FleetUsageRow, networks_of_fleet, usage_of_line
from storage.fleets import find_fleet


class JudgedLine(NamedTuple):
    """A line to judge: the columns that verdicts need, and the version that they are made of."""

    subscriber_id: int
    iccid: str
    version: int
    account_id: int
    status: str
    status_since: float
    sim_status: str
    esim: int
    issued: float
    activated: float
    last_used: float
    mcc: int
    mnc: int
    country: str
    data_allowed: int
    speed_limit: int
    steering_list: int
    balance: int
    pays: str
    read: float
    usage_first: int
    usage_last: int
    usage_read: float
    sighted: float
    asked: float
    radio: str
    rank: int
    due: float
    facts: str


JUDGED_LINES = (
    sa.select(*(FLEET_LINE_DETAIL.c.facts if name == "facts" else FLEET_LINE.c[name] for name in JudgedLine._fields))
    .select_from(
        FLEET_LINE.join(
            FLEET_LINE_DETAIL,
            sa.and_(FLEET_LINE_DETAIL.c.fleet == FLEET_LINE.c.fleet, FLEET_LINE_DETAIL.c.subscriber_id == FLEET_LINE.c.subscriber_id),
        )
    )
    .where(OF_FLEET, LINE_IS_THERE)
)

LINES_TO_JUDGE = Query(
    JudgedLine,
    JUDGED_LINES.where(FLEET_LINE.c.judge_due > 0, FLEET_LINE.c.judge_due <= sa.bindparam("now", type_=sa.Double))
    .order_by(FLEET_LINE.c.judge_due)
    .limit(sa.bindparam("most", type_=sa.Integer)),
)

NUMBERED_LINES_TO_JUDGE = Query(
    JudgedLine,
    lambda dialect: JUDGED_LINES.where(
        unindexed(FLEET_LINE.c.judge_due) > 0, FLEET_LINE.c.subscriber_id.in_(bound_list(dialect, "numbers", sa.BigInteger))
    ),
)


def lines_to_judge(connection: Connection, *, fleet: int, now: float, most: int) -> list[JudgedLine]:
    """At most `most` lines whose verdicts are to be made at `now`, Unix seconds."""
    return connection.all(LINES_TO_JUDGE, fleet=fleet, now=now, most=most)


def numbered_lines_to_judge(connection: Connection, *, fleet: int, numbers: Sequence[int]) -> list[JudgedLine]:
    """The lines with these subscriber ids whose verdicts are ever to be made."""
    return connection.all(NUMBERED_LINES_TO_JUDGE, fleet=fleet, numbers=pack_rows([[number] for number in numbers]))


@first_row(float)
def next_judge_due(*, fleet: int) -> sa.Executable:
    """When the next line is to be judged, Unix seconds; None where none waits for time alone."""
    return sa.select(sa.func.min(FLEET_LINE.c.judge_due).label("due")).where(OF_FLEET, LINE_IS_THERE, FLEET_LINE.c.judge_due > 0)


class EndingPackage(NamedTuple):
    """The last package of a line that can still be used, where it ends soon and none follows it. `ends`: Unix seconds."""

    id: int
    template_id: int
    ends: float

    @property
    def key(self) -> str:
        """What tells it from others, and from itself with another end."""
        return f"{self.id} {int(self.ends)}"


class LineJudgement(NamedTuple):
    """What was found of a line in the version `seen` of its row: its supply, its problems, its figures, what it waits for.

    Unix seconds, 0: never. `read`: when its packages had been read; `complete`: whether all its weeks were known.
    """

    subscriber_id: int
    seen: int
    package_state: str
    package_ends: float
    data_left: int
    data_limit: int
    judge_due: float
    rank: int
    due: float
    figures: LineFigures
    problems: Sequence[ProblemState]
    iccid: str
    read: float
    complete: bool
    ending: EndingPackage | None


NOTE_JUDGEMENT = Command(
    sa.update(FLEET_LINE)
    .where(OF_FLEET_LINE, LINE_IS_THERE, FLEET_LINE.c.version == sa.bindparam("seen", type_=sa.Integer))
    .values(
        package_state=sa.bindparam("package_state", type_=sa.Text),
        package_ends=sa.bindparam("package_ends", type_=sa.Double),
        data_left=sa.bindparam("data_left", type_=sa.BigInteger),
        data_limit=sa.bindparam("data_limit", type_=sa.BigInteger),
        judge_due=sa.bindparam("judge_due", type_=sa.Double),
        rank=sa.bindparam("rank", type_=sa.Integer),
        due=sa.bindparam("due", type_=sa.Double),
        judged=sa.bindparam("now", type_=sa.Double),
    )
)


JUDGEMENT_COLUMNS = LineJudgement._fields[: LineJudgement._fields.index("figures")]


def record_judgements(connection: Connection, *, fleet: int, judgements: Sequence[LineJudgement], now: float) -> list[LineNews]:
    """Stores what was found at `now` (Unix seconds) of lines that have not changed since they were looked at; what is new of them."""
    if connection.first(FLEET_IS_CURRENT, fleet=fleet) is None:
        return []
    figures: list[tuple[int, LineFigures]] = []
    changes: list[tuple[LineJudgement, ProblemChanges]] = []
    for found in judgements:
        given = {name: getattr(found, name) for name in JUDGEMENT_COLUMNS}
        if connection.run(NOTE_JUDGEMENT, fleet=fleet, now=now, **given):
            figures.append((found.subscriber_id, found.figures))
            problems = record_problems(connection, fleet=fleet, subscriber_id=found.subscriber_id, found=found.problems, now=now)
            changes.append((found, problems))
    record_figures(connection, fleet=fleet, figures=figures)
    return news_of_judgements(connection, fleet=fleet, changes=changes, now=now)


def news_of_judgements(
    connection: Connection, *, fleet: int, changes: Sequence[tuple[LineJudgement, ProblemChanges]], now: float
) -> list[LineNews]:
    """What is new of lines that were judged in this transaction, whose rows nobody else changes until the commit. `now`: Unix seconds.

    Nothing of a line whose judgement before was its first, or knew fewer weeks, or was made of facts from before a gap.
    """
    if not changes:
        return []
    baseline = baseline_of_fleet(connection, fleet=fleet)
    known = baselines_of_lines(connection, fleet=fleet, numbers=[found.subscriber_id for found, _ in changes])
    news, kept = list[LineNews](), list[LineBaseline]()
    for found, problems in changes:
        before = known.get(found.subscriber_id)
        ending = "" if before is None else before.ending
        if found.ending is not None:
            ending = found.ending.key
        complete = int(found.complete or (before is not None and before.complete == 1))
        after = LineBaseline(found.subscriber_id, found.read, complete, ending)
        if after != before:
            kept.append(after)
        if before is not None and baseline is not None and is_compared(found, before, baseline, now):
            news += news_of_judgement(found, problems, before, baseline.organisation)
    put_line_baselines(connection, fleet=fleet, lines=kept)
    return news


def is_compared(found: LineJudgement, before: LineBaseline, baseline: FleetBaseline, now: float) -> bool:
    """Whether a judgement and the one `before` it were made of facts of one time without a gap. `now`: Unix seconds."""
    return baseline.tells(now) and before.complete == 1 and not before.read < baseline.began <= found.read


def news_of_judgement(found: LineJudgement, problems: ProblemChanges, before: LineBaseline, organisation: str) -> list[LineNews]:
    """The problems that were opened and closed, and the package that ends soon."""
    news: list[LineNews] = [ProblemNews(organisation, found.iccid, each.cause, each.since, closed=False) for each in problems.opened]
    news += [ProblemNews(organisation, found.iccid, each.cause, each.since, closed=True) for each in problems.closed]
    ending = found.ending
    if ending is not None and ending.key != before.ending:
        news.append(EndingNews(organisation, found.iccid, ending.id, ending.template_id, ending.ends))
    return news


class LinePast(NamedTuple):
    """What is stored of a line that is read live: how far it has been read, its use, its open problems, and the networks of its fleet."""

    fleet: int
    line: LineWork
    usage: list[FleetUsageRow]
    problems: list[OpenProblem]
    networks: list[FleetNetworkRow]


@runs_in_thread
def past_of_line(connection: Connection, *, organisation: str, identity: str, subscriber_id: int, first: int, last: int) -> LinePast | None:
    """The line in the organisation's fleet that `identity` shows, with its use from day `first` to `last`; None where it is in none."""
    fleet = find_fleet(connection, organisation=organisation, identity=identity)
    found = [] if fleet is None else work_of_lines(connection, fleet=fleet.id, numbers=[subscriber_id])
    if fleet is None or not found:
        return None
    named = {"fleet": fleet.id, "subscriber_id": subscriber_id}
    usage = usage_of_line(connection, **named, first=first, last=last)
    return LinePast(fleet.id, found[0], usage, open_problems_of_line(connection, **named), networks_of_fleet(connection, fleet=fleet.id))
