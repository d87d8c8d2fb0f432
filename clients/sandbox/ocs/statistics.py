"""Answers of the statistics methods, exactly as they go over the wire (ocs.md 3.6). Days are UTC days [I]."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from itertools import groupby

from clients.sandbox.ocs.entities import DATA, DAY, MICRO, Cdr, Line
from clients.sandbox.ocs.signalling import Wire, country_of, gy_event, map_event, s6a_event, sponsor_of
from clients.sandbox.ocs.state import World

EURO_ID = 1


def usage_over(world: World, line: Line, first_day: date, last_day: date) -> Wire:
    """The answer of subscriberUsageOverPeriod, both days included; without use only a total of zeros."""
    start, end = _bounds(first_day, last_day)
    cdrs = line.cdrs[bisect_left(line.cdrs, start, key=lambda row: row.at) : bisect_left(line.cdrs, end, key=lambda row: row.at)]
    total = _total(world, cdrs)
    if not cdrs:
        return {"total": total}
    days = [_day(world, line, list(rows)) for _, rows in groupby(cdrs, key=lambda row: row.at // DAY)]
    return {"total": total, "usages": [{"subscriberId": line.id, "total": total, "subsPeriodUsages": days}]}


def events_over(world: World, line: Line, first_day: date, last_day: date) -> Wire:
    """The answer of subscriberNetworkEventsOverPeriod; a section without events is absent."""
    start, end = _bounds(first_day, last_day)
    found = [event for event in line.events if start <= event.at < end]
    answer: Wire = {}
    for section, key, write in (("map", "mapAnswer", map_event), ("s6a", "s6aAnswer", s6a_event), ("gy", "gyAnswer", gy_event)):
        rows = [write(world, line, event) for event in found if event.section == section]
        if rows:
            answer[key] = {"events": rows}
    return answer


def _bounds(first_day: date, last_day: date) -> tuple[int, int]:
    start = datetime(first_day.year, first_day.month, first_day.day, tzinfo=UTC)
    end = datetime(last_day.year, last_day.month, last_day.day, tzinfo=UTC) + timedelta(days=1)
    return int(start.timestamp()), int(end.timestamp())


def _day(world: World, line: Line, cdrs: list[Cdr]) -> Wire:
    moment = datetime.fromtimestamp(cdrs[0].at, UTC)
    return {
        "day": moment.date().isoformat(),
        "total": _total(world, cdrs),
        "subsDailyUsages": [_record(world, line, cdr) for cdr in cdrs],
    }


def _total(world: World, cdrs: Sequence[Cdr]) -> Wire:
    """Costs, units per type (keys are strings), and units per country and operator, which mix types as upstream does."""
    total: Wire = {
        "resellerCost": sum(cdr.reseller_cost for cdr in cdrs) / MICRO,
        "subscriberCost": sum(cdr.subscriber_cost for cdr in cdrs) / MICRO,
    }
    if cdrs:
        units: Counter[int] = Counter()
        for cdr in cdrs:
            units[cdr.usage_type] += cdr.quantity
        total["quantityPerType"] = {str(kind): units[kind] for kind in sorted(units)}
        total["quantityPerCountry"] = _countries(world, cdrs)
    return total


def _countries(world: World, cdrs: Iterable[Cdr]) -> list[Wire]:
    """Per country, and in it per operator, in the order of their codes."""
    units: Counter[tuple[str, str, int]] = Counter()
    for cdr in cdrs:
        units[(cdr.mcc, cdr.mnc, cdr.network_id)] += cdr.quantity
    found: list[Wire] = []
    for mcc, group in groupby(sorted(units), key=lambda key: key[0]):
        operators = list(group)
        country = country_of(world, operators[0][2])
        found.append(
            {
                "mcc": int(mcc),
                "name": country.name,
                "alpha2": country.iso2.lower(),
                "qty": sum(units[key] for key in operators),
                "quantityPerOperator": [{"mnc": int(key[1]), "name": world.networks[key[2]].name, "qty": units[key]} for key in operators],
            }
        )
    return found


def _record(world: World, line: Line, cdr: Cdr) -> Wire:
    account = world.accounts[cdr.account_id]
    reseller = world.resellers[account.reseller_id]
    country, network = country_of(world, cdr.network_id), world.networks[cdr.network_id]
    row: Wire = {
        "subscriberId": cdr.line_id,
        "sessionId": cdr.session,
        "usageDateUtc": datetime.fromtimestamp(cdr.at, UTC).isoformat()[:19],
        "usageType": cdr.usage_type,
        "accountId": account.id,
        "accountName": account.name,
        "resellerId": reseller.id,
        "resellerName": reseller.name,
        "mcc": int(cdr.mcc),
        "mnc": int(cdr.mnc),
        "country": country.name,
        "countryAlpha2": country.iso2.lower(),
        "operator": network.name,
        "quantity": cdr.quantity,
        "resellerCost": cdr.reseller_cost / MICRO,
        "resellerPlanId": reseller.buy_tariff_id,
        "resellerCurrencyId": EURO_ID,
        "resellerConvertRate": 1.0,
        "resellerPrepaidPackageQty": 0,
        "subscriberCost": cdr.subscriber_cost / MICRO,
        "lac": cdr.lac,
        "cellId": cdr.cell_id,
        "rat": cdr.rat,
        "imei": cdr.imei,
        "imsi": sponsor_of(world, line).prefix,
        "sponsorImsi": int(line.multi_imsis[-1].imsi if line.multi_imsis else line.imsi),
        "accountChargeEntity": cdr.account_charged,
    }
    return row | _optional(world, line, cdr)


def _optional(world: World, line: Line, cdr: Cdr) -> Wire:
    """Members that only some records have. Choice: the plan is the one the rule belongs to as long as that tariff exists."""
    row: Wire = {}
    if cdr.reseller_rule_id is not None:
        row["resellerPlanRuleId"] = cdr.reseller_rule_id
    if cdr.package_id is not None:
        row["subscriberPrepaidPackageId"] = cdr.package_id
        row["subscriberPrepaidPackageQty"] = cdr.in_package
    if cdr.subscriber_rule_id is not None:
        row["subscriberPlanId"] = line.mobile_plan_id or world.resellers[line.reseller_id].mobile_plan_id
        row["subscriberPlanRuleId"] = cdr.subscriber_rule_id
        row["subscriberCurrencyId"] = EURO_ID
        row["subscriberConvertRate"] = 1.0
    if cdr.usage_type == DATA:
        row["apn"] = "internet"
    if cdr.other_party is not None:
        row["otherPartyNumber"] = cdr.other_party
    return row
