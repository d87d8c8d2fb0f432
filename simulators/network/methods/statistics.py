"""Statistics of a line, a week at most: what it used and its signalling, as the wire shows them. Days are UTC days."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from itertools import groupby

from simulators.network.entities import DATA, DAY_SECONDS, MICRO_EURO, Cdr, Line, NetworkEvent, NetworkToken
from simulators.network.named_records import find_flat_line, find_nested_line
from simulators.network.wire import EURO_CURRENCY_ID, RequestFields, WireMembers, invalid_request, network_method, read_day, wire_moment
from simulators.network.world import Country, Sponsor, World

LONGEST_PERIOD = timedelta(days=6)
UNKNOWN_VALUE = "N/A"


@network_method("getSubscriberActivePeriod")
def get_subscriber_active_period(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    line = find_flat_line(world, caller, fields)
    first, last = line.first_usage_at, line.last_usage_at
    period = {"start": wire_moment(first), "end": wire_moment(last)} if first is not None and last is not None else None
    return {"subscriberId": line.id, "period": period}


@network_method("subscriberUsageOverPeriod", statistics=True)
def subscriber_usage_over_period(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    line, first, last = read_statistics_period(world, caller, fields)
    return usage_view(world, line, first, last)


@network_method("subscriberNetworkEventsOverPeriod", statistics=True)
def subscriber_network_events_over_period(world: World, caller: NetworkToken, fields: RequestFields) -> object:
    line, first, last = read_statistics_period(world, caller, fields)
    return network_events_view(world, line, first, last)


def read_statistics_period(world: World, caller: NetworkToken, fields: RequestFields) -> tuple[Line, date, date]:
    period = fields.nested("period")
    first, last = period.need("start", read_day), period.need("end", read_day)
    period.done()
    if not first <= last <= first + LONGEST_PERIOD:
        raise invalid_request("params.period must have 1 to 7 days, both ends included, and not end before it starts")
    return find_nested_line(world, caller, fields), first, last


def usage_view(world: World, line: Line, first_day: date, last_day: date) -> WireMembers:
    """The answer of subscriberUsageOverPeriod, both days included; without use only a total of zeros."""
    start, end = _period_bounds(first_day, last_day)
    cdrs = line.cdrs[bisect_left(line.cdrs, start, key=lambda row: row.at) : bisect_left(line.cdrs, end, key=lambda row: row.at)]
    total = _usage_total(world, cdrs)
    if not cdrs:
        return {"total": total}
    days = [_day_usage(world, line, list(rows)) for _, rows in groupby(cdrs, key=lambda row: row.at // DAY_SECONDS)]
    return {"total": total, "usages": [{"subscriberId": line.id, "total": total, "subsPeriodUsages": days}]}


def network_events_view(world: World, line: Line, first_day: date, last_day: date) -> WireMembers:
    """The answer of subscriberNetworkEventsOverPeriod; a section without events is absent."""
    start, end = _period_bounds(first_day, last_day)
    found = [event for event in line.events if start <= event.at < end]
    answer: WireMembers = {}
    for section, key, write in (
        ("map", "mapAnswer", map_event_view),
        ("s6a", "s6aAnswer", s6a_event_view),
        ("gy", "gyAnswer", gy_event_view),
    ):
        rows = [write(world, line, event) for event in found if event.section == section]
        if rows:
            answer[key] = {"events": rows}
    return answer


def _period_bounds(first_day: date, last_day: date) -> tuple[int, int]:
    start = datetime(first_day.year, first_day.month, first_day.day, tzinfo=UTC)
    end = datetime(last_day.year, last_day.month, last_day.day, tzinfo=UTC) + timedelta(days=1)
    return int(start.timestamp()), int(end.timestamp())


def _day_usage(world: World, line: Line, cdrs: list[Cdr]) -> WireMembers:
    moment = datetime.fromtimestamp(cdrs[0].at, UTC)
    return {
        "day": moment.date().isoformat(),
        "total": _usage_total(world, cdrs),
        "subsDailyUsages": [_usage_record(world, line, cdr) for cdr in cdrs],
    }


def _usage_total(world: World, cdrs: Sequence[Cdr]) -> WireMembers:
    """Costs, units per type (keys are strings), and units per country and operator, which mix types as upstream does."""
    total: WireMembers = {
        "resellerCost": sum(cdr.reseller_cost for cdr in cdrs) / MICRO_EURO,
        "subscriberCost": sum(cdr.subscriber_cost for cdr in cdrs) / MICRO_EURO,
    }
    if cdrs:
        units: Counter[int] = Counter()
        for cdr in cdrs:
            units[cdr.usage_type] += cdr.quantity
        total["quantityPerType"] = {str(kind): units[kind] for kind in sorted(units)}
        total["quantityPerCountry"] = _usage_by_country(world, cdrs)
    return total


def _usage_by_country(world: World, cdrs: Iterable[Cdr]) -> list[WireMembers]:
    units: Counter[tuple[str, str, int]] = Counter()
    for cdr in cdrs:
        units[(cdr.mcc, cdr.mnc, cdr.network_id)] += cdr.quantity
    found: list[WireMembers] = []
    for mcc, group in groupby(sorted(units), key=lambda key: key[0]):
        operators = list(group)
        country = network_country(world, operators[0][2])
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


def _usage_record(world: World, line: Line, cdr: Cdr) -> WireMembers:
    account = world.accounts[cdr.account_id]
    reseller = world.resellers[account.reseller_id]
    country, network = network_country(world, cdr.network_id), world.networks[cdr.network_id]
    row: WireMembers = {
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
        "resellerCost": cdr.reseller_cost / MICRO_EURO,
        "resellerPlanId": reseller.buy_tariff_id,
        "resellerCurrencyId": EURO_CURRENCY_ID,
        "resellerConvertRate": 1.0,
        "resellerPrepaidPackageQty": 0,
        "subscriberCost": cdr.subscriber_cost / MICRO_EURO,
        "lac": cdr.lac,
        "cellId": cdr.cell_id,
        "rat": cdr.rat,
        "imei": cdr.imei,
        "imsi": line_sponsor(world, line).prefix,
        "sponsorImsi": int(line.multi_imsis[-1].imsi if line.multi_imsis else line.imsi),
        "accountChargeEntity": cdr.account_charged,
        "resellerPlanRuleId": cdr.reseller_rule_id,
        "subscriberPrepaidPackageId": cdr.package_id,
        "subscriberPrepaidPackageQty": None if cdr.package_id is None else cdr.in_package,
    }
    if cdr.subscriber_rule_id is not None:  # Choice: the plan is the one the rule belongs to as long as that tariff exists
        row["subscriberPlanId"] = line.mobile_plan_id or world.resellers[line.reseller_id].mobile_plan_id
        row |= {"subscriberPlanRuleId": cdr.subscriber_rule_id, "subscriberCurrencyId": EURO_CURRENCY_ID, "subscriberConvertRate": 1.0}
    row |= {"apn": "internet" if cdr.usage_type == DATA else None, "otherPartyNumber": cdr.other_party}
    return {name: value for name, value in row.items() if value is not None}


def map_event_view(world: World, line: Line, event: NetworkEvent) -> WireMembers:
    """A location update of the older networks."""
    return {
        "eventTime": _event_time(event.at),
        "mcc": int(event.mcc),
        "mnc": int(event.mnc),
        "service": "Mobility",
        "o_gt": UNKNOWN_VALUE,
        "o_ssn": "7",
        "d_gt": UNKNOWN_VALUE,
        "d_ssn": "6",
        "opcode": "2",
        "shortCode": "UL",
        "longCode": event.code,
        "result": event.result,
        "in_imsi": line.imsi,
        "protocol": "MAP",
        "acn": "networkLocUpContext-v3",
        "host": UNKNOWN_VALUE,
    } | _event_operator(world, event)


def s6a_event_view(world: World, line: Line, event: NetworkEvent) -> WireMembers:
    """A registration in a 4G or 5G network."""
    network, sponsor = world.networks[event.network_id], line_sponsor(world, line)
    realm = _event_realm(event)
    return {
        "eventTime": _event_time(event.at),
        "service": "S6a",
        "cmdCode": "316",
        "cmdNameShort": event.code,
        "cmdNameLong": "Update-Location-Request",
        "protocol": "S6a",
        "sponsor_imsi": line.multi_imsis[-1].imsi if line.multi_imsis else line.imsi,
        "subs_imsi": line.imsi,
        "mvno": world.resellers[line.reseller_id].name,
        "code": event.result,
        "oper_allowed": "true" if network.network_id in world.profiles[line.profile_id].network_ids else "false",
        "customer": world.accounts[line.account_id].name,
        "session": event.session,
        "orig_realm": realm,
        "orig_host": f"mme.{realm}",
        "dest_realm": UNKNOWN_VALUE,
        "host": UNKNOWN_VALUE,
        "user_apn": UNKNOWN_VALUE,
        "sponsor": sponsor.name,
    } | _event_operator(world, event)


def gy_event_view(world: World, line: Line, event: NetworkEvent) -> WireMembers:
    """A credit request of a data session. Numbers are strings here (quirk 14)."""
    realm = _event_realm(event)
    return {
        "eventTime": _event_time(event.at),
        "hopByHopS": UNKNOWN_VALUE,
        "endToEndS": UNKNOWN_VALUE,
        "hopByHopL": UNKNOWN_VALUE,
        "endToEndL": UNKNOWN_VALUE,
        "originHost": f"pgw.{realm}",
        "originRealm": realm,
        "requestType": {"I": "Init", "U": "Update", "T": "Term"}[event.code[-1]],
        "session": event.session,
        "msisdn": line.number,
        "imei": line.sighting.imei if line.sighting is not None else UNKNOWN_VALUE,
        "apn": "internet",
        "ratTypes": line.sighting.rat if line.sighting is not None else UNKNOWN_VALUE,
        "userLocationInfoMCC": event.mcc,
        "userLocationInfoMNC": event.mnc,
        "userLocationInfoLAC": UNKNOWN_VALUE,
        "userLocationInfoSAC": UNKNOWN_VALUE,
        "usedUnits": str(event.used_bytes),
        "responseCode": event.result,
        "sgsnip": UNKNOWN_VALUE,
        "rreResponse": UNKNOWN_VALUE,
        "ratingGroup": UNKNOWN_VALUE,
        "rreAllowedQuota": UNKNOWN_VALUE,
    } | _event_operator(world, event)


def _event_operator(world: World, event: NetworkEvent) -> WireMembers:
    country, network = network_country(world, event.network_id), world.networks[event.network_id]
    return {"countryName": country.name, "countryAlpha2": country.iso2.lower(), "operator": network.name}


def _event_realm(event: NetworkEvent) -> str:
    return f"epc.mnc{event.mnc.zfill(3)}.mcc{event.mcc}.3gppnetwork.org"


def _event_time(at: int) -> str:
    """With milliseconds and the offset of the upstream's own clock."""
    return datetime.fromtimestamp(at, timezone(timedelta(hours=1))).isoformat(timespec="milliseconds")


def network_country(world: World, network_id: int) -> Country:
    return world.countries[world.networks[network_id].iso2]


def line_sponsor(world: World, line: Line) -> Sponsor:
    return world.sponsors[line.sim.sponsor_id]
