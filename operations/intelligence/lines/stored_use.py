"""A stored line and what it used, as a live read tells them: so that the same functions look at both."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import cast

import orjson

from clients.ocs.subscribers import Subscriber
from operations.caches.usage import DayUse, PlaceUse
from operations.intelligence.lines.fleet_lines import FleetLine
from operations.intelligence.lines.usage import CountryVisit, LineUse, sum_places
from operations.upstream.signalling import NetworkCode
from operations.upstream.usage import USAGE_TYPE_DATA
from storage.fleet_judgements import JudgedLine
from storage.fleet_usage import FleetNetworkRow, FleetUsageRow

FleetNetworks = Mapping[NetworkCode, FleetNetworkRow]
"""The networks that lines of a fleet used, as records told them."""


def stored_line_use(rows: Sequence[FleetUsageRow], networks: FleetNetworks, first: int, last: int) -> LineUse:
    """What a line used from day `first` to `last`, ordinals, as a live read tells it."""
    days: dict[int, DayUse] = {}
    places: list[PlaceUse] = []
    visits: dict[tuple[int, str], None] = {}
    for row in rows:
        if not first <= row.day <= last:
            continue
        data = row.quantity if row.kind == USAGE_TYPE_DATA else 0
        day = days.get(row.day) or DayUse(date.fromordinal(row.day), 0, 0, 0)
        days[row.day] = DayUse(day.day, day.data_bytes + data, day.reseller_cost + row.network_cost, day.subscriber_cost + row.usage_income)
        if not row.mcc:
            continue
        network = networks.get((row.mcc, row.mnc))
        country, operator = ("", "") if network is None else (network.country, network.operator)
        places.append(
            PlaceUse(row.mcc, row.mnc, country, operator, row.kind, row.quantity, row.network_cost, row.usage_income, row.covered)
        )
        if country:
            visits[row.day, country] = None
    whole = tuple(days[day] for day in sorted(days))
    return LineUse(
        whole,
        sum_places(places),
        sum(day.reseller_cost for day in whole),
        sum(day.subscriber_cost for day in whole),
        tuple(CountryVisit(date.fromordinal(day), country) for day, country in visits),
    )


def countries_of(networks: FleetNetworks) -> dict[NetworkCode, str]:
    """The countries of networks, as far as records told them."""
    return {code: network.country for code, network in networks.items() if network.country}


def stored_fleet_line(line: JudgedLine) -> FleetLine:
    """The line as a list shows it, as far as the search for packages looks at it."""
    return FleetLine(line.subscriber_id, line.iccid, line.account_id, line.status, row_of_facts(line.facts, line.iccid))


def row_of_facts(text: str, iccid: str) -> Subscriber:
    """The row that the stored `text` of a line was made of, without names and histories."""
    facts = cast("dict[str, object]", orjson.loads(text))
    imsi = facts.get("imsi")
    return cast("Subscriber", {**facts, "imsiList": [{"imsi": imsi, "iccid": iccid}] if isinstance(imsi, str) else []})


def listed_line(line: JudgedLine) -> FleetLine:
    """The line as a list shows it, with the steering list that a call of ours may have given it since."""
    found = stored_fleet_line(line)
    row = found.row.copy()
    row.pop("steeringListId", None)
    if line.steering_list:
        row["steeringListId"] = line.steering_list
    return found._replace(row=row)
