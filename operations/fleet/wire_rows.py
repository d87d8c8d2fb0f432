"""What the charging system's answers become in the read model: rows of lines, packages and usage.

PINs, PUKs, keys, activation and confirmation codes are dropped here, and names stand apart from everything else.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import NamedTuple, cast

import orjson

from clients.ocs.packages import Package, PackageList, RecurringSeries
from clients.ocs.statistics import PeriodUsage
from clients.ocs.subscribers import Subscriber
from clients.ocs.times import wire_seconds
from operations.upstream.lines import PackageState, current_entry, line_status_word, package_end, package_start, package_state
from operations.upstream.usage import USAGE_TYPE_DATA, micro_euros, usage_country, usage_day, usage_rows
from operations.vocabulary import network_country
from storage.fleet_lines import LineDetail, ListedLine
from storage.fleet_packages import FleetPackageRow
from storage.fleet_usage import FleetNetworkRow, FleetUsageRow

LISTED_ICCID = re.compile(r"[0-9A-Fa-f]{13,22}", re.ASCII)
"""Shorter and longer ones than ours exist, and some end in a letter that fills them up; nothing else is repeated in an answer."""

KEPT_LINE_FIELDS = frozenset({
    "subscriberId", "accountId", "batchId", "prepaid", "useAccountForCharging", "balance", "activationDate", "lastUsageDate",
    "lastMcc", "lastMnc", "allowedData", "steeringListId", "throttlingLimit",
})  # fmt: skip
KEPT_SIM_FIELDS = frozenset({"id", "esim", "status", "affectationDateUtc"})
LIVE_ONLY_FIELDS = ("networkInfo", "greenZoneCounter")
"""What a line tells when it is asked for alone, and a list does not."""
DROPPED_PACKAGE_FIELDS = frozenset({"rdbLocationZones", "rdbDestinationZones", "packageTemplate", "subscriberid", "esimId"})
DROPPED_SERIES_FIELDS = frozenset({"templateName", "subscriber"})
STATUS_ROWS_KEPT = 6
NUMBERS_LIMIT = 24
"""Identifiers of a line that are looked for: those it has, and the newest that it had."""
LARGEST_TEXT = 200
LARGEST_ADDRESS = 320
"""No address of a buyer is longer: one that is cut is nobody's who could be erased."""


class NamesKept(NamedTuple):
    """Whether customers' names are kept, and of which lines (subscriber ids) they are not all the same."""

    kept: bool
    erased: frozenset[int]

    def of(self, number: int) -> bool:
        """Whether the names of the line with this subscriber id are kept."""
        return self.kept and number not in self.erased


def row_digest(row: Subscriber, *, personal: bool) -> int:
    """56 bits that differ where the charging system tells something else of the line, or names are to be kept and were not."""
    told = {name: value for name, value in row.items() if name not in LIVE_ONLY_FIELDS}
    return int.from_bytes(hashlib.blake2b(orjson.dumps(told), digest_size=7, key=b"names" if personal else b"").digest())


def line_rows(row: Subscriber, *, personal: bool) -> tuple[ListedLine, LineDetail] | None:
    """The rows of a line; None where it has nothing that could be an ICCID, so that nobody could name it."""
    history = current_entry(row.get("imsiList", ()))
    iccid = None if history is None else history.get("iccid")
    if iccid is None or not LISTED_ICCID.fullmatch(iccid):
        return None
    status, sim = current_entry(row.get("status", ())), row.get("sim", {})
    told = cast("Mapping[str, object]", row)
    name, email = contact_text(row.get("subscriberName")), contact_text(row.get("email"), LARGEST_ADDRESS)
    company, phone = contact_text(told.get("company")), contact_text(told.get("phone"))
    kept = (name, company, email, phone) if personal and line_status_word(row) != "END_OF_LIFE" else (None, None, None, None)
    mcc, mnc = row.get("lastMcc", 0), row.get("lastMnc", 0)
    listed = ListedLine(
        iccid=iccid,
        numbers=identifiers_text(row, iccid),
        account_id=row.get("accountId", 0),
        status=line_status_word(row),
        status_since=0.0 if status is None else wire_seconds(status.get("startDate")) or 0.0,
        sim_status=sim.get("status", "").upper(),
        esim=int(sim.get("esim", False)),
        issued=wire_seconds(sim.get("affectationDateUtc")) or 0.0,
        activated=wire_seconds(row.get("activationDate")) or 0.0,
        last_used=wire_seconds(row.get("lastUsageDate")) or 0.0,
        mcc=mcc,
        mnc=mnc,
        country=(network_country(f"{mcc:03}", f"{mnc:02}") or "") if mcc else "",
        data_allowed=flag(row.get("allowedData")),
        calls_out_allowed=flag(row.get("allowedMoc")),
        calls_in_allowed=flag(row.get("allowedMtc")),
        sms_out_allowed=flag(row.get("allowedMosms")),
        sms_in_allowed=flag(row.get("allowedMtsms")),
        speed_limit=row.get("throttlingLimit", 0),
        steering_list=row.get("steeringListId", 0),
        balance=micro_euros(row.get("balance")),
        pays="account" if row.get("useAccountForCharging") else "line",
        search=fold_text("\n".join(text for text in kept if text is not None)),
        digest=row_digest(row, personal=personal),
    )
    return listed, LineDetail(line_facts_text(row), *kept)


def line_facts_text(row: Subscriber) -> str:
    """JSON of the wire's row without names, histories of identifiers, and secrets."""
    kept: dict[str, object] = {name: value for name, value in row.items() if name in KEPT_LINE_FIELDS}
    kept["sim"] = {name: value for name, value in row.get("sim", {}).items() if name in KEPT_SIM_FIELDS}
    statuses = [{"startDate": each.get("startDate"), "status": each.get("status")} for each in row.get("status", [])]
    kept["status"] = statuses[-STATUS_ROWS_KEPT:]
    history = current_entry(row.get("imsiList", ()))
    number = current_entry(row.get("phoneNumberList", ()))
    kept["imsi"] = None if history is None else history.get("imsi")
    kept["msisdn"] = None if number is None else number.get("phoneNumber")
    return orjson.dumps(kept).decode()


def contact_text(value: object, most: int = LARGEST_TEXT) -> str | None:
    return (value.strip()[:most] or None) if isinstance(value, str) else None


def fold_text(text: str) -> str:
    """The form in which texts are looked for: without case, and with single blanks."""
    return " ".join(text.casefold().split(" "))


def flag(value: bool | None) -> int:
    """1, 0, or -1 where nothing is said."""
    return -1 if value is None else int(value)


def identifiers_text(row: Subscriber, iccid: str) -> str:
    """Every identifier that the line has or had, between bars, those in use first: `|iccid|imsi|number|`."""
    found = [iccid]
    histories: list[tuple[Sequence[Mapping[str, object]], tuple[str, ...]]] = [
        (row.get("imsiList", []), ("imsi", "iccid")),
        (row.get("phoneNumberList", []), ("phoneNumber",)),
        (row.get("multiImsi", []), ("imsi",)),
    ]
    for rows, names in histories:
        for each in reversed(rows):
            found += [value for name in names if isinstance(value := each.get(name), str) and value]
    return f"|{'|'.join(list(dict.fromkeys(found))[:NUMBERS_LIMIT])}|"


def package_rows(found: PackageList) -> list[FleetPackageRow]:
    """The packages of a line by id, then its series."""
    single = found.get("callUseSingleCounter", False)
    packages = sorted(package_row(row, single=single) for row in found.get("packages", []))
    return packages + sorted(series_row(row) for row in found.get("recurring", []))


def package_row(row: Package, *, single: bool) -> FleetPackageRow:
    starts, ends = package_start(row), package_end(row)
    kept: dict[str, object] = {name: value for name, value in row.items() if name not in DROPPED_PACKAGE_FIELDS}
    if single:
        kept["callUseSingleCounter"] = True
    return FleetPackageRow(
        series=0,
        id=row.get("subscriberprepaidpackageid", 0),
        template_id=row.get("templateId") or row.get("packageTemplate", {}).get("prepaidpackagetemplateid", 0),
        zone_id=row.get("locationzoneid") or row.get("rdbLocationZones", {}).get("locationzoneid", 0),
        active=int(row.get("active", True)),
        starts=0.0 if starts is None else starts.timestamp(),
        ends=0.0 if ends is None else ends.timestamp(),
        data_limit=row.get("pckdatabyte", 0),
        data_used=row.get("useddatabyte", 0),
        price=micro_euros(row.get("cost")),
        facts=orjson.dumps(kept).decode(),
    )


def series_row(row: RecurringSeries) -> FleetPackageRow:
    kept = {name: value for name, value in row.items() if name not in DROPPED_SERIES_FIELDS}
    starts = wire_seconds(row.get("startTimeUTC")) or 0.0
    return FleetPackageRow(
        1, row.get("id", 0), row.get("template", 0), 0, int(row.get("active", True)), starts, 0.0, 0, 0, 0, orjson.dumps(kept).decode()
    )


def stored_packages(rows: Iterable[FleetPackageRow]) -> PackageList:
    """The answer that `rows` were made of, without names."""
    packages: list[Package] = []
    series: list[RecurringSeries] = []
    single = False
    for row in rows:
        kept = cast("dict[str, object]", orjson.loads(row.facts))
        if row.series:
            series.append(cast("RecurringSeries", kept))
            continue
        single = bool(kept.pop("callUseSingleCounter", single))
        packages.append(cast("Package", kept))
    return {"packages": packages, "recurring": series, "callUseSingleCounter": single}


ENDING_SECONDS = 3 * 86_400.0
"""Choice: three days before its end a package is told to be ending: time to sell another one, and to be read after a weekend."""
SUPPLY_ORDER: tuple[PackageState, ...] = ("running", "assigned", "scheduled", "upcoming", "exhausted", "blocked", "expired")
USABLE_SUPPLY = frozenset({"running", "assigned"})


class LineSupply(NamedTuple):
    """What packages of a line stand for at one moment. `state`: `none` where there are none; `changes`: when time alone changes it.

    `ends`: when the last one that has not expired ends; bytes are those of usable packages, -1: none is usable. Unix seconds, 0: never.
    """

    state: str
    ends: float
    data_left: int
    data_limit: int
    changes: float


def line_supply_at(found: PackageList, now: float) -> LineSupply:
    """The state of the package that serves the line best at `now`, Unix seconds. Raises OcsError where a date cannot be read."""
    single = found.get("callUseSingleCounter", False)
    states: list[str] = []
    ends, left, limit = 0.0, -1, -1
    changes: list[float] = []
    for row in found.get("packages", []):
        state = data_state(row, package_state(row, now, single_counter=single))
        states.append(state)
        begin, end = package_start(row), package_end(row)
        moments = [moment.timestamp() for moment in (begin, end) if moment is not None]
        moments += [] if end is None else [end.timestamp() - ENDING_SECONDS]
        changes += [moment for moment in moments if moment > now]
        if state != "expired" and end is not None:
            ends = max(ends, end.timestamp())
        if state in USABLE_SUPPLY:
            held, used = row.get("pckdatabyte", 0), row.get("useddatabyte", 0)
            left, limit = max(left, 0) + max(0, held - used), max(limit, 0) + held
    if any(row.get("active") is not False and not row.get("nbCreated") for row in found.get("recurring", [])):
        states.append("upcoming")
    best = min(states, key=lambda state: SUPPLY_ORDER.index(cast(PackageState, state)), default="none")
    return LineSupply(best, ends, left, limit, min(changes, default=0.0))


def data_state(row: Package, state: PackageState) -> PackageState:
    """The state of a package as data is concerned: one that holds data and has none left is exhausted, whatever calls it has."""
    held = row.get("pckdatabyte", 0)
    return "exhausted" if state in USABLE_SUPPLY and held > 0 and row.get("useddatabyte", 0) >= held else state


class UsageOfDays(NamedTuple):
    """Rows of usage, and the networks that they are of."""

    rows: list[FleetUsageRow]
    networks: list[FleetNetworkRow]


def usage_of_days(answer: PeriodUsage, accounts: frozenset[int]) -> UsageOfDays:
    """The rows of `answer`: one for each day, network and kind. Raises OcsError where a day cannot be read.

    `accounts`: the caller's own; a record of another account is of a former owner of the line, and is left out. What the charging
    system's total of a day says beyond its records is a row of no network.
    """
    found: dict[tuple[int, int, int, int], list[int]] = {}
    networks: dict[tuple[int, int], FleetNetworkRow] = {}
    for row in usage_rows(answer):
        day, total = usage_day(row), row.get("total", {})
        rest = [total.get("quantityPerType", {}).get(str(USAGE_TYPE_DATA), 0), micro_euros(total.get("resellerCost")), 0]
        rest[2] = micro_euros(total.get("subscriberCost"))
        strangers = False
        for record in row.get("subsDailyUsages", []):
            if "accountId" in record and record["accountId"] not in accounts:
                strangers = True
                continue
            mcc, mnc, kind, quantity = record.get("mcc", 0), record.get("mnc", 0), record.get("usageType", 0), record.get("quantity", 0)
            cost, income = micro_euros(record.get("resellerCost")), micro_euros(record.get("subscriberCost"))
            add_use(found, (day.toordinal(), mcc, mnc, kind), (quantity, record.get("subscriberPrepaidPackageQty", 0), cost, income))
            rest = [rest[0] - (quantity if kind == USAGE_TYPE_DATA else 0), rest[1] - cost, rest[2] - income]
            if (mcc, mnc) not in networks:
                country = usage_country(record.get("countryAlpha2", ""), mcc, mnc)
                networks[mcc, mnc] = FleetNetworkRow(mcc, mnc, country, record.get("operator", "").strip()[:LARGEST_TEXT])
        if not strangers and any(rest):
            add_use(found, (day.toordinal(), 0, 0, USAGE_TYPE_DATA if rest[0] else 0), (rest[0], 0, rest[1], rest[2]))
    return UsageOfDays([FleetUsageRow(*key, *found[key]) for key in sorted(found)], list(networks.values()))


def add_use(found: dict[tuple[int, int, int, int], list[int]], key: tuple[int, int, int, int], figures: Sequence[int]) -> None:
    known = found.setdefault(key, [0, 0, 0, 0])
    for place, figure in enumerate(figures):
        known[place] += figure


def ordinal(moment: float) -> int:
    """The UTC day of `moment`, Unix seconds, as a proleptic ordinal."""
    return date(1970, 1, 1).toordinal() + int(moment // 86_400)


def day_start(day: int) -> float:
    """When the UTC day begins, Unix seconds."""
    return (day - date(1970, 1, 1).toordinal()) * 86_400.0


def date_text(day: int) -> str:
    """The UTC day with this ordinal, YYYY-MM-DD."""
    return date.fromordinal(day).isoformat()
