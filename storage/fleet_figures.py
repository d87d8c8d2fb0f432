"""What answers about a whole fleet need of each line, made when it was judged, so that no answer looks at days of use line by line."""

from collections.abc import Sequence
from typing import NamedTuple

import sqlalchemy as sa

from storage.engine.sql import CLUSTERED, BigInt, Command, Connection, TableDescription, upsert


class LineFigures(NamedTuple):
    """Of one line. `made`: the ordinal of the UTC day before which the days end that the figures are of; money is micro-euro.

    `churn`: tenths of a point, -1: no score; `churn_signs`: JSON of what the score is made of, '' without one. `line_days`: days with data
    that could be compared; `anomalies`: JSON list, '' where nothing stands out. `coverage`: the verdict on where it is, '' where none is
    made; `mcc`, `mnc`: the network that this is about; `outside_bytes`, `outside_cost`, `outside_income`: use there that no package paid,
    in 28 days; `coverage_signs`: JSON of what the verdict is made of. `sponsor`: whose SIM it is, -1: not known. `main_mcc`, `main_mnc`,
    `main_at`: where most of its data of a week was used in the country where it is, or where it was seen last; and since when that holds,
    Unix seconds, 0: not seen lately. `profile`: JSON of how it was used in 28 days, '' where it
    was not. `plan`: the verdict on its packages, with what another set would save the customer, what is paid now, for packages and in
    all, and what networks charge, each in 30 days. `entry_country`: the unusual country that it entered last, '' where there is none;
    `entry_at`: when, Unix seconds, 0: never; `entry_facts`: JSON of what tells so, and of earlier entries.
    """

    made: int
    churn: int
    churn_signs: str
    line_days: int
    anomalies: str
    coverage: str
    mcc: int
    mnc: int
    outside_bytes: BigInt
    outside_cost: BigInt
    outside_income: BigInt
    coverage_signs: str
    sponsor: BigInt
    main_mcc: int
    main_mnc: int
    main_at: float
    profile: str
    plan: str
    plan_saving: BigInt
    plan_now: BigInt
    plan_income: BigInt
    plan_cost: BigInt
    entry_country: str
    entry_at: float
    entry_facts: str


class FleetFigureTable(TableDescription, row=LineFigures, table=True):
    """The figures of a line of a fleet."""

    fleet: BigInt
    subscriber_id: BigInt
    __table_args__ = (
        sa.PrimaryKeyConstraint("fleet", "subscriber_id"),
        sa.Index("fleet_figure_entry", "fleet", "entry_at"),
        CLUSTERED,
    )


FLEET_FIGURE = FleetFigureTable.table

FIGURE_COLUMNS = ("fleet", "subscriber_id", *LineFigures._fields)

PUT_FIGURES = Command(upsert(FLEET_FIGURE, FIGURE_COLUMNS, key=["fleet", "subscriber_id"]))


def record_figures(connection: Connection, *, fleet: int, figures: Sequence[tuple[int, LineFigures]]) -> None:
    """Stores the figures of lines, each by its subscriber id."""
    connection.run_many(PUT_FIGURES, [{"fleet": fleet, "subscriber_id": number, **found._asdict()} for number, found in figures])
