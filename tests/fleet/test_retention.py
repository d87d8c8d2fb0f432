"""What goes when its time is over: fleets that ended, lines that left, problems that were solved, days of use that become months."""

from collections import defaultdict
from datetime import date

import pytest

from storage.engine.sql import Connection
from storage.upstream_connections import set_connection
from tests.fleet.stage import ReadModelStage
from tests.fleet.truth import EPOCH_DAY, rows_of
from tests.network_facts import ACCOUNT, SIBLING
from transports.worker.retention import retention_chore

DAY, MINUTE, HOUR = 86_400, 60, 3600
TABLES = (
    *("fleet_line", "fleet_line_detail", "fleet_package", "fleet_usage", "fleet_month", "fleet_day", "fleet_network", "fleet_problem"),
    *("fleet_line_money", "fleet_sync"),
)


class Retention:
    """The worker's chore over the stage's database."""

    def __init__(self, stage: ReadModelStage) -> None:
        self._stage = stage
        self._chore = retention_chore(stage.world.store, stage.clock, stage.reports.append)

    async def run(self) -> None:
        await self._chore.run()

    async def counts(self, fleet: int) -> dict[str, int]:
        """Rows of a fleet by table, where there are any."""

        names = {table: "id" if table == "fleet_sync" else "fleet" for table in TABLES}

        def count(connection: Connection) -> dict[str, int]:
            return {
                table: len(rows_of(connection, f"select 1 from {table} where {key} = :fleet", fleet=fleet)) for table, key in names.items()
            }

        return {table: rows for table, rows in (await self._stage.world.store.read(count)).items() if rows}

    async def execute(self, sql: str) -> None:
        await self._stage.world.store.write(lambda connection: connection.driver.execute(sql, {}))


@pytest.mark.long
async def test_a_fleet_that_ended_is_removed_and_its_own_row_an_hour_later(both: ReadModelStage) -> None:
    await both.count()
    await both.sync()
    retention, fleet = Retention(both), (await both.stored()).id
    assert (await retention.counts(fleet))["fleet_line"] == 13
    await both.world.store.write(set_connection, organisation=both.who.organisation, mode="managed", account_id=SIBLING, own_token=None)
    assert (await retention.counts(fleet))["fleet_line"] == 13
    await retention.run()
    assert await retention.counts(fleet) == {"fleet_sync": 1}
    await retention.execute(f"insert into fleet_network values ({fleet}, 242, 1, 'NO', 'Late')")
    both.clock.advance(HOUR - 1)
    await retention.run()
    assert await retention.counts(fleet) == {"fleet_network": 1, "fleet_sync": 1}
    both.clock.advance(2)
    await retention.run()
    assert await retention.counts(fleet) == {}
    assert await both.count() == 6


@pytest.mark.long
async def test_many_rows_go_in_steps(both: ReadModelStage) -> None:
    await both.count()
    retention, fleet = Retention(both), (await both.stored()).id
    numbers = ", ".join(f"({fleet}, {line}, {day}, 242, 1, 33, 1, 0, 0, 0)" for line in range(30) for day in range(1, 101))
    await retention.execute(f"insert into fleet_month values {numbers}")
    await both.world.store.write(set_connection, organisation=both.who.organisation, mode="managed", account_id=SIBLING, own_token=None)
    await retention.run()
    assert await retention.counts(fleet) == {"fleet_sync": 1}


@pytest.mark.long
async def test_a_line_that_left_is_removed_after_thirty_days(both: ReadModelStage) -> None:
    await both.count()
    await both.sync()
    retention, line = Retention(both), both.line()
    line.account_id = SIBLING
    both.network.lookup.moved()
    both.clock.advance(6 * MINUTE)
    await both.sync()
    fleet = (await both.stored()).id

    async def kept() -> int:
        sql = f"select 1 from fleet_line_detail where fleet = :fleet and subscriber_id = {line.id}"
        return await both.world.store.read(lambda connection: len(rows_of(connection, sql, fleet=fleet)))

    both.clock.advance(30 * DAY - HOUR)
    await retention.run()
    assert await kept() == 1
    both.clock.advance(2 * HOUR)
    await retention.run()
    assert await kept() == 0
    assert await both.count() == 12


@pytest.mark.long
async def test_a_problem_goes_thirty_days_after_it_was_over(both: ReadModelStage) -> None:
    await both.count()
    retention, fleet, now = Retention(both), (await both.stored()).id, both.clock.now()
    names = "fleet, subscriber_id, cause, place, since, money, evidence, opened, seen, closed"
    rows = f"({fleet}, 1, 'open', 0, 1, 1, '', 1, 1, 0), ({fleet}, 1, 'over', 0, 1, 1, '', 1, 1, {now})"
    await retention.execute(f"insert into fleet_problem ({names}) values {rows}")
    both.clock.advance(29 * DAY)
    await retention.run()
    before = (await retention.counts(fleet))["fleet_problem"]
    both.clock.advance(2 * DAY)
    await retention.run()
    assert (await retention.counts(fleet))["fleet_problem"] == before - 1


@pytest.mark.long
async def test_days_of_use_become_months_and_no_sum_changes(both: ReadModelStage) -> None:
    """A hundred and twenty days of life; the chore runs now and then, and the network's own records are the truth."""
    await both.count()
    retention = Retention(both)
    for _ in range(6):
        await both.pass_time(20 * DAY)
        await both.sync()
        await retention.run()
    both.clock.advance(9 * HOUR)
    await both.sync()
    await retention.run()
    fleet, today = (await both.stored()).id, EPOCH_DAY + int(both.clock.now()) // DAY

    def figures(connection: Connection) -> tuple[int, dict[tuple[int, int, int, int, int], list[int]]]:
        days = rows_of(connection, "select * from fleet_usage where fleet = :fleet", fleet=fleet)
        sums = defaultdict[tuple[int, int, int, int, int], list[int]](lambda: [0, 0, 0, 0])
        for row in [*days, *rows_of(connection, "select * from fleet_month where fleet = :fleet", fleet=fleet)]:
            month = date.fromordinal(row["day"]).replace(day=1).toordinal()
            found = sums[row["subscriber_id"], month, row["mcc"], row["mnc"], row["kind"]]
            for place, name in enumerate(("quantity", "covered", "network_cost", "usage_income")):
                found[place] += row[name]
        return min(row["day"] for row in days), sums

    oldest, sums = await both.world.store.read(figures)
    assert oldest >= today - 90
    true = defaultdict[tuple[int, int, int, int, int], list[int]](lambda: [0, 0, 0, 0])
    for line in both.network.lines_of(ACCOUNT):
        for cdr in line.cdrs:
            month = date.fromordinal(EPOCH_DAY + cdr.at // DAY).replace(day=1).toordinal()
            found = true[line.id, month, int(cdr.mcc), int(cdr.mnc), cdr.usage_type]
            for place, figure in enumerate((cdr.quantity, cdr.in_package, cdr.reseller_cost, cdr.subscriber_cost)):
                found[place] += figure
    assert sums == true
    assert (await retention.counts(fleet))["fleet_month"] > 20


@pytest.mark.long
async def test_a_month_is_kept_for_thirteen_months(both: ReadModelStage) -> None:
    await both.count()
    retention, fleet = Retention(both), (await both.stored()).id
    months = [date(2025, 11, 1), date(2025, 12, 1), date(2026, 1, 1)]
    rows = ", ".join(f"({fleet}, 1, {month.toordinal()}, 242, 1, 33, 1, 0, 0, 0)" for month in months)
    await retention.execute(f"insert into fleet_month values {rows}")
    await retention.run()  # it is January 2027

    def kept(connection: Connection) -> list[int]:
        return sorted(row["day"] for row in rows_of(connection, "select day from fleet_month where fleet = :fleet", fleet=fleet))

    assert await both.world.store.read(kept) == [month.toordinal() for month in months[1:]]


async def test_the_large_tables_are_looked_through_once_an_hour(stage: ReadModelStage) -> None:
    await stage.count()
    retention, fleet = Retention(stage), (await stage.stored()).id
    await retention.run()
    await retention.execute(f"insert into fleet_month values ({fleet}, 1, 1, 242, 1, 33, 1, 0, 0, 0)")
    stage.clock.advance(59 * MINUTE)
    await retention.run()
    assert (await retention.counts(fleet))["fleet_month"] == 1
    stage.clock.advance(2 * MINUTE)
    await retention.run()
    assert "fleet_month" not in await retention.counts(fleet)
