"""What the read model must hold, made of the simulated network itself: lines, packages and use, in the columns of the tables."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any, NamedTuple

import orjson

from operations.vocabulary import network_country
from simulators.network.entities import DAY_SECONDS, UNLIMITED_BITRATE, Line, Package
from simulators.network.methods.packages import package_view, series_view
from simulators.network.wire import WireMembers, drop_empty
from simulators.network.world import World
from storage.engine.sql import Connection
from storage.fleet_line_money import BLOCK_DAYS
from storage.fleet_lines import ListedLine
from storage.fleet_packages import FleetPackageRow
from storage.fleet_usage import KEPT_USAGE_DAYS, FleetDayRow, FleetUsageRow

EPOCH_DAY = date(1970, 1, 1).toordinal()
WIRE_ONLY = ("digest", "numbers", "search")
"""Columns that are no fact of the line by themselves; the last two are looked at apart."""
FACT_COLUMNS = tuple(name for name in ListedLine._fields if name not in WIRE_ONLY)
NAMES_OF_PACKAGES = ("rdbLocationZones", "rdbDestinationZones", "packageTemplate", "subscriberid", "esimId")
NAMES_OF_SERIES = ("templateName", "subscriber")
MANAGED_ACCOUNTS = (8101, 8102, 8103, 8104)


class StoredFleet(NamedTuple):
    """What stands in the tables of one fleet, by subscriber id."""

    id: int
    lines: dict[int, dict[str, Any]]
    """Those that are there."""
    details: dict[int, dict[str, Any]]
    packages: dict[int, list[FleetPackageRow]]
    usage: dict[int, list[FleetUsageRow]]
    days: list[FleetDayRow]
    """What all lines used."""
    money: dict[tuple[int, int], tuple[int, int]]
    """By line and day, what it cost and brought in, as far as that is anything."""


def rows_of(connection: Connection, sql: str, **values: Any) -> list[dict[str, Any]]:
    """The rows of a statement that is written as text."""
    given = sql if connection.dialect_name == "sqlite" else sql.replace(":fleet", "%(fleet)s").replace(":organisation", "%(organisation)s")
    cursor: Any = connection.driver.execute(given, values)
    names = [each[0] for each in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def current_fleets(connection: Connection, *, organisation: str) -> list[int]:
    return [
        row["id"]
        for row in rows_of(
            connection, "select id from fleet_sync where organisation = :organisation and ended = 0", organisation=organisation
        )
    ]


def stored_fleet(connection: Connection, *, fleet: int) -> StoredFleet:
    """Everything that is stored of a fleet and would be shown."""
    lines = {
        row["subscriber_id"]: row for row in rows_of(connection, "select * from fleet_line where fleet = :fleet and gone = 0", fleet=fleet)
    }
    details = {
        row["subscriber_id"]: row for row in rows_of(connection, "select * from fleet_line_detail where fleet = :fleet", fleet=fleet)
    }
    packages, usage = defaultdict[int, list[FleetPackageRow]](list), defaultdict[int, list[FleetUsageRow]](list)
    for row in rows_of(connection, "select * from fleet_package where fleet = :fleet order by subscriber_id, series, id", fleet=fleet):
        packages[row["subscriber_id"]].append(FleetPackageRow(*(row[name] for name in FleetPackageRow._fields)))
    for row in rows_of(
        connection, "select * from fleet_usage where fleet = :fleet order by subscriber_id, day, mcc, mnc, kind", fleet=fleet
    ):
        usage[row["subscriber_id"]].append(FleetUsageRow(*(row[name] for name in FleetUsageRow._fields)))
    days = [
        FleetDayRow(*(row[name] for name in FleetDayRow._fields))
        for row in rows_of(connection, "select * from fleet_day where fleet = :fleet order by day, mcc, mnc, kind", fleet=fleet)
    ]
    return StoredFleet(fleet, lines, details, packages, usage, days, stored_money(connection, fleet))


def stored_money(connection: Connection, fleet: int) -> dict[tuple[int, int], tuple[int, int]]:
    found: dict[tuple[int, int], tuple[int, int]] = {}
    for row in rows_of(connection, "select * from fleet_line_money where fleet = :fleet", fleet=fleet):
        before = 0, 0
        for place in range(BLOCK_DAYS):
            sums = row[f"cost_{place}"], row[f"income_{place}"]
            if sums != before:
                found[row["subscriber_id"], row["block"] * BLOCK_DAYS + place] = sums[0] - before[0], sums[1] - before[1]
            before = sums
    return found


def true_columns(line: Line) -> dict[str, Any]:
    """The columns of a line that a listing tells."""
    seen = line.sighting
    mcc, mnc = (int(seen.mcc), int(seen.mnc)) if seen else (0, 0)
    return {
        "iccid": line.iccid,
        "account_id": line.account_id,
        "status": line.status,
        "status_since": float(line.statuses[-1].start),
        "sim_status": line.sim.status,
        "esim": int(line.sim.esim),
        "issued": float(line.sim.affected_at or 0),
        "activated": float(line.activated_at or 0),
        "last_used": float(line.last_usage_at or 0),
        "mcc": mcc,
        "mnc": mnc,
        "country": (network_country(f"{mcc:03}", f"{mnc:02}") or "") if seen else "",
        "data_allowed": int(line.allowed_data),
        "calls_out_allowed": int(line.allowed_moc),
        "calls_in_allowed": int(line.allowed_mtc),
        "sms_out_allowed": int(line.allowed_mo_sms),
        "sms_in_allowed": 1,
        "speed_limit": 0 if line.bitrate == UNLIMITED_BITRATE else int(line.bitrate.removeprefix("KB_")),
        "steering_list": line.steering_list_id or 0,
        "balance": line.balance,
        "pays": "account" if line.use_account else "line",
    }


def true_identifiers(line: Line) -> set[str]:
    found = {value for row in line.imsis for value in (row.imsi, row.iccid)} | {row.number for row in line.numbers}
    return found | {row.imsi for row in line.multi_imsis if row.end is None}


def package_identity(world: World, line: Line, held: Package) -> tuple[Any, ...]:
    facts = plain_facts(package_view(world, line, held, recurring=True), NAMES_OF_PACKAGES)
    moments = (float(held.activated or 0), float(held.expires or 0))
    return (0, held.id, held.template_id, held.zone_id, int(held.active), *moments, held.data_limit or 0, held.data_used, held.cost, facts)


def true_packages(world: World, line: Line) -> list[tuple[Any, ...]]:
    """The packages and series of a line by id, as `stored_identity` has a row."""
    rows = [package_identity(world, line, each) for each in line.packages]
    rows += [
        (
            1,
            each.id,
            each.template_id,
            0,
            int(each.active),
            float(each.start or 0),
            0.0,
            0,
            0,
            0,
            plain_facts(series_view(each), NAMES_OF_SERIES),
        )
        for each in line.series
    ]
    return sorted(rows, key=lambda row: row[:2])


def plain_facts(view: WireMembers, dropped: Iterable[str]) -> Mapping[str, object]:
    """The wire's row as the simulator writes it, without names."""
    return {name: value for name, value in orjson.loads(orjson.dumps(drop_empty(view))).items() if name not in dropped}


def stored_identity(row: FleetPackageRow) -> tuple[Any, ...]:
    facts = orjson.loads(row.facts)
    facts.pop("callUseSingleCounter", None)
    return (*row[:-1], facts)


def true_usage(line: Line, accounts: frozenset[int], first: int, last: int) -> list[FleetUsageRow]:
    """What the line's own records say of the days from `first` to `last`, ordinals, while it was in one of `accounts`."""
    sums = defaultdict[tuple[int, int, int, int], list[int]](lambda: [0, 0, 0, 0])
    for cdr in line.cdrs:
        day = EPOCH_DAY + cdr.at // DAY_SECONDS
        if first <= day <= last and cdr.account_id in accounts:
            figures = sums[day, int(cdr.mcc), int(cdr.mnc), cdr.usage_type]
            for place, figure in enumerate((cdr.quantity, cdr.in_package, cdr.reseller_cost, cdr.subscriber_cost)):
                figures[place] += figure
    return [FleetUsageRow(*key, *sums[key]) for key in sorted(sums)]


def line_differences(stored: StoredFleet, world: World, accounts: frozenset[int]) -> list[str]:
    """Where the listed columns differ from the network, a sentence each."""
    true = {line.id: line for account in accounts for line in world.lines_of(account)}
    found = [f"line {id} is in the model and in none of the accounts" for id in stored.lines.keys() - true.keys()]
    found += [f"line {id} is not in the model" for id in true.keys() - stored.lines.keys()]
    for id in sorted(true.keys() & stored.lines.keys()):
        row, wanted = stored.lines[id], true_columns(true[id])
        found += [f"line {id}: {name} is {row[name]!r}, not {wanted[name]!r}" for name in FACT_COLUMNS if row[name] != wanted[name]]
        if {each for each in row["numbers"].split("|") if each} != true_identifiers(true[id]):
            found.append(f"line {id}: its identifiers are {row['numbers']}")
    return found


def package_differences(stored: StoredFleet, world: World) -> list[str]:
    found: list[str] = []
    for id in stored.lines:
        held, true = [stored_identity(row) for row in stored.packages.get(id, [])], true_packages(world, world.lines[id])
        if held != true:
            only = [("held", *row) for row in held if row not in true] + [("true", *row) for row in true if row not in held]
            found.append(f"line {id}: its packages differ in {only}")
    return found


def usage_differences(stored: StoredFleet, world: World, accounts: frozenset[int], now: float) -> list[str]:
    """Days of use that are missing, too many or wrong, of the last ninety."""
    today = EPOCH_DAY + int(now) // DAY_SECONDS
    found: list[str] = []
    for id in stored.lines:
        first = today - KEPT_USAGE_DAYS + 1
        held = [row for row in stored.usage.get(id, []) if row.day >= first]
        true = true_usage(world.lines[id], accounts, first, today)
        if held != true:
            wrong = sorted(set(held) ^ set(true))
            found.append(f"line {id}: its use differs in {[('held' if row in held else 'true', *row) for row in wrong][:6]}")
    return found


def sum_differences(stored: StoredFleet, now: float) -> list[str]:
    """Days of all lines, and the money of lines, that are not the sums of what lines used, of the last ninety days."""
    first = EPOCH_DAY + int(now) // DAY_SECONDS - KEPT_USAGE_DAYS + 1
    sums = defaultdict[tuple[int, int, int, int], list[int]](lambda: [0, 0, 0, 0])
    money = defaultdict[tuple[int, int], list[int]](lambda: [0, 0])
    for id, row in [(line, row) for line in stored.lines for row in stored.usage.get(line, []) if row.day >= first]:
        for place, figure in enumerate((row.network_cost, row.usage_income)):
            money[id, row.day][place] += figure
        free = int(row.quantity > 0 and row.network_cost == 0)
        for place, figure in enumerate((1, free, row.network_cost, row.usage_income)):
            sums[row[:4]][place] += figure
    held = [row for row in stored.days if row.day >= first and any(row[4:])]
    true = [FleetDayRow(*key, *sums[key]) for key in sorted(sums)]
    wrong = sorted(set(held) ^ set(true))
    found = [f"the days of all lines differ: {[('held' if row in held else 'true', *row) for row in wrong][:6]}"] if wrong else []
    of_lines = {key: sums for key, sums in stored.money.items() if key[0] in stored.lines and key[1] >= first}
    if of_lines != {key: tuple(sums) for key, sums in money.items() if any(sums)}:
        found.append("the money of lines differs from what they used")
    return found


def model_differences(stored: StoredFleet, world: World, accounts: frozenset[int], now: float) -> list[str]:
    """Everything that is not as the network has it."""
    return [
        *line_differences(stored, world, accounts),
        *package_differences(stored, world),
        *usage_differences(stored, world, accounts, now),
        *sum_differences(stored, now),
    ]
