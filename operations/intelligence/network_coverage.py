"""Which lines are on networks that their packages do not cover, what that costs, and what to do; and the sheet of it."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Literal

import anyio.to_thread
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.intelligence.diagnosis.coverage_verdicts import (
    UNCOVERED_USE_DAYS,
    CoverageAudit,
    CoverageRank,
    CoverageVerdict,
    NetworkTotals,
    UncoveredLine,
    make_coverage_audit,
    place_behind,
    rank_at,
    read_uncovered_lines,
)
from operations.intelligence.diagnosis.steering_facts import SEEN_LATELY_DAYS, read_steering_changes
from operations.intelligence.lines.fleet_lines import cached_result
from operations.intelligence.lines.fleet_view import view_fleet
from operations.intelligence.lines.usage import last_whole_days
from operations.intelligence.money.advice import AdviceFigures, LineAdvice, advice_figures
from operations.intelligence.offers.coverage_map import NetworkCodes, NetworkTold
from operations.intelligence.reports.sheet import (
    Chart,
    Figure,
    Finding,
    Series,
    Sheet,
    SheetValue,
    Table,
    example_finding,
    sheet_table,
    stacked_chart,
)
from operations.upstream.connection import AccountGone
from operations.upstream.usage import euros
from operations.vocabulary import UpstreamId
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, NotFound, OcsError
from registry.operation import CamelInput, Example, Scope, operation
from storage.line_steering import LineSteering

COVERAGE_METHOD = (
    f"Each active line seen in the last {SEEN_LATELY_DAYS} days (its last registration, or its last use, which is no later than that) "
    "is held against the zones of its packages that have data left, and if these cover it against its use of 7 days, too; what lines "
    "outside used without a package is summed over 28 whole UTC days, on the network they are on. Lines are looked at when they change, "
    "and each day."
)
COVERAGE_CURSOR = re.compile(r"[0-9]{1,2}-[0-9]{1,18}-[0-9]{1,16}", re.ASCII)


class CoverageQuery(CamelInput):
    """Which lines, and how many rows."""

    account_id: Annotated[UpstreamId | None, Field(description="Only this account.")] = None
    limit: Annotated[int, Field(ge=1, le=200, description="Lines and networks shown.")] = 50
    starting_after: Annotated[str | None, Field(alias="starting_after", max_length=64, description="`next` of the page before.")] = None


class OutsideUse(TypedDict):
    """Use without a package in 28 days, on the network the line is on."""

    bytes: Annotated[int, Field(description="Data that no package paid")]
    cost: Annotated[float, Field(description="Same as network_cost", deprecated=True)]
    charged: Annotated[float, Field(description="Same as usage_income", deprecated=True)]
    network_cost: Annotated[float, Field(description="EUR that networks charge you for it, calls and messages too")]
    usage_income: Annotated[float, Field(description="EUR that balances of lines and accounts were charged")]


class CoverableNetwork(NetworkTold):
    """A network where the line would be covered."""

    network_cost_per_mib: Annotated[float | None, Field(description="EUR that you pay for 1,048,576 bytes; null: no active rule")]


class OfferedPackage(TypedDict):
    """A package that covers the network."""

    zone_id: int
    template_id: Annotated[
        int, Field(description="For assign_package, or assign_recurring_package: the lists do not say which are recurring")
    ]
    package_income: Annotated[float, Field(description="EUR that the customer pays for one package")]


class OutsideLine(AdviceFigures):
    """A line whose data no package of its pays where it is. Savings are of 28 days."""

    iccid: str
    account_id: int
    verdict: Annotated[
        CoverageVerdict,
        Field(
            description="mis_steered: its zone has other networks of the country; outside_zone: none there; no_package: none with data "
            "left; unknown: the network's country or the package's zone is not known"
        ),
    ]
    judged_by: Annotated[
        Literal["registration", "usage"],
        Field(description="usage: on a covered network at last, but most data of 7 days was used on this one or others outside"),
    ]
    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2")]
    network: NetworkTold
    seen: Annotated[str, Field(description="RFC 3339, UTC: registered then, or last used then and therefore seen no earlier")]
    zones: Annotated[list[int], Field(description="Of its packages with data left; list_location_zones names them")]
    could_use: Annotated[list[CoverableNetwork], Field(description="At most three covered networks of the country, cheapest data first")]
    outside: Annotated[OutsideUse | None, Field(description="Null: some of its days have not been read yet")]
    steering_list: Annotated[int | None, Field(description="The line's own, else its account's")]
    offer: OfferedPackage | None


class NetworkLines(TypedDict):
    """The lines on one network, of those that were seen lately."""

    country: str | None
    network: NetworkTold
    lines: int
    covered: int
    mis_steered: int
    share_mis_steered: Annotated[float, Field(description="Percent of the lines")]
    cost_outside: Annotated[float, Field(description="Same as network_cost_outside", deprecated=True)]
    charged_outside: Annotated[float, Field(description="Same as usage_income_outside", deprecated=True)]
    network_cost_outside: Annotated[float, Field(description="EUR; see `outside.network_cost`")]
    usage_income_outside: Annotated[float, Field(description="EUR; see `outside.usage_income`")]


class CoverageTotals(TypedDict):
    """Every line of the fleet once."""

    covered: int
    mis_steered: int
    outside_zone: int
    no_package: int
    unknown: int
    not_seen_lately: Annotated[int, Field(description="Longer ago than 7 days: not judged")]
    never_seen: int
    not_active: Annotated[int, Field(description="Not looked into")]


class Coverage(TypedDict):
    """The audit. Both lists begin with what is worst."""

    since: Annotated[str, Field(description="First day of the use that is summed")]
    totals: CoverageTotals
    cost_outside: Annotated[float, Field(description="Same as network_cost_outside", deprecated=True)]
    charged_outside: Annotated[float, Field(description="Same as usage_income_outside", deprecated=True)]
    network_cost_outside: Annotated[float, Field(description="EUR that you pay networks for all lines that are not covered")]
    usage_income_outside: Annotated[float, Field(description="EUR that their customers were charged outside packages")]
    networks: Annotated[list[NetworkLines], Field(description="As many as `limit`")]
    more_networks: int
    lines: Annotated[list[OutsideLine], Field(description="Only those that are not covered")]
    more_lines: Annotated[int, Field(description="On the next pages")]


COVERAGE_EXAMPLE: Coverage = {
    "since": "2026-12-18",
    "totals": {
        "covered": 85,
        "mis_steered": 1,
        "outside_zone": 0,
        "no_package": 0,
        "unknown": 0,
        "not_seen_lately": 5,
        "never_seen": 4,
        "not_active": 45,
    },
    "cost_outside": 0.0128,
    "charged_outside": 0.0307,
    "network_cost_outside": 0.0128,
    "usage_income_outside": 0.0307,
    "networks": [
        {
            "country": "NO",
            "network": {"mcc": "242", "mnc": "02", "operator": "Telia"},
            "lines": 12,
            "covered": 11,
            "mis_steered": 1,
            "share_mis_steered": 8.3,
            "cost_outside": 0.0128,
            "charged_outside": 0.0307,
            "network_cost_outside": 0.0128,
            "usage_income_outside": 0.0307,
        }
    ],
    "more_networks": 24,
    "lines": [
        {
            "iccid": "8988303700000100286",
            "account_id": 8101,
            "verdict": "mis_steered",
            "judged_by": "registration",
            "country": "NO",
            "network": {"mcc": "242", "mnc": "02", "operator": "Telia"},
            "seen": "2027-01-15T09:41:07Z",
            "zones": [2327],
            "could_use": [{"mcc": "242", "mnc": "01", "operator": "Telenor", "network_cost_per_mib": 0.0009}],
            "outside": {"bytes": 10485760, "cost": 0.0128, "charged": 0.0307, "network_cost": 0.0128, "usage_income": 0.0307},
            "steering_list": 18,
            "action": "change_steering_list",
            "why": "list_leads_there",
            "do": [
                {"operation": "modify_subscriber_steering_list", "arguments": {"iccid": "8988303700000100286", "listId": 17}},
                {"operation": "push_steering_to_subscriber", "arguments": {"iccid": "8988303700000100286"}},
            ],
            "leads_to": {"mcc": "242", "mnc": "01", "operator": "Telenor"},
            "saving_operator": 0.0038,
            "saving_customer": 0.0307,
            "offer": None,
        }
    ],
    "more_lines": 0,
}


@operation(
    "POST",
    "/v1/intelligence/audit-network-coverage",
    scope=Scope.READ,
    upstream=True,
    operator=True,
    title="Audit network coverage",
    raises=[NotFound, AccountGone, OcsError],
    examples=[
        Example(
            "Which roamers are outside their zone?",
            {"limit": 10},
            example_finding(COVERAGE_EXAMPLE, COVERAGE_METHOD, sampled=95, of=140),
        )
    ],
    tool_defaults={"limit": 5},
)
async def audit_network_coverage(ctx: Ctx, params: CoverageQuery) -> Finding[Coverage]:
    """Find lines on networks outside their packages' zones, and their cost.

    Each comes with an action. `seen` says how fresh the network is.

    Active lines seen within 7 days are judged; where one was longer ago says nothing of where it is. Verdicts come from the read model,
    where each line is looked at when it changes, and each day; a line that was not used lately and whose packages do not work where it
    was last is asked for the time of its registration. Lines on a covered network are held against their use of 7 days: some are there
    at the moment, and elsewhere most of the time. The result is kept for a minute: its pages are of one state. What a steering list holds
    is not shown by the charging system: where nearly all lines of a list in a country are on one network, the list is taken to lead
    there. A line is pushed to only where its list leads to a covered network, and never twice in 24 hours; where its list leads outside,
    another list is named. Nothing is advised that costs you or the customer more than what is. A network has one code in an answer, the
    one that most lines were seen with.
    """
    after, account = parse_coverage_cursor(params.starting_after), params.account_id
    view = await view_fleet(ctx, params, last_whole_days(ctx.now, UNCOVERED_USE_DAYS), account_id=account)
    found = await cached_result(ctx, view.upstream, partial(make_coverage_audit, ctx, view), account, further=after is not None)
    audit, order = found.figures, found.figures.order
    begin = place_behind(order, after)
    numbers = order.numbers[begin : begin + params.limit]
    more = len(order.numbers) - begin - len(numbers)
    if more:
        ctx.next_cursor = coverage_cursor(rank_at(order, begin + len(numbers) - 1))
        ctx.note = f"{len(numbers)} of {len(order.numbers)}."
    page = await read_uncovered_lines(ctx, view, audit, numbers)
    steering = await read_steering_changes(ctx)  # anew for each page: the audit is kept for a minute, and a push must not be advised again
    lines = await anyio.to_thread.run_sync(outside_lines, audit, page, steering, ctx.now)
    return found.finding(coverage_page(audit, lines, more, params.limit), COVERAGE_METHOD)


def coverage_cursor(rank: CoverageRank) -> str:
    """The position of a line, so that the next page continues behind it even after a new audit."""
    verdict, cost, line = rank
    return f"{verdict}-{-cost}-{line}"


def parse_coverage_cursor(text: str | None) -> CoverageRank | None:
    """The rank that a cursor names; None without a cursor. Raises BadRequest."""
    if text is None:
        return None
    if not COVERAGE_CURSOR.fullmatch(text):
        raise BadRequest("starting_after: not a cursor of this list", param="starting_after", hint="Take it from the page before")
    verdict, cost, line = map(int, text.split("-"))
    return verdict, -cost, line


def coverage_page(audit: CoverageAudit, lines: list[OutsideLine], more: int, limit: int) -> Coverage:
    counted = audit.verdicts
    paid, charged = euros(audit.outside.network_cost), euros(audit.outside.usage_income)
    return {
        "since": audit.window.first.isoformat(),
        "totals": {
            "covered": counted.get("covered", 0),
            "mis_steered": counted.get("mis_steered", 0),
            "outside_zone": counted.get("outside_zone", 0),
            "no_package": counted.get("no_package", 0),
            "unknown": counted.get("unknown", 0),
            "not_seen_lately": counted.get("not_seen_lately", 0),
            "never_seen": counted.get("never_seen", 0),
            "not_active": audit.inactive,
        },
        "cost_outside": paid,
        "charged_outside": charged,
        "network_cost_outside": paid,
        "usage_income_outside": charged,
        "networks": [network_lines_view(one, audit.codes) for one in audit.networks[:limit]],
        "more_networks": max(0, len(audit.networks) - limit),
        "lines": lines,
        "more_lines": more,
    }


def network_lines_view(one: NetworkTotals, codes: NetworkCodes) -> NetworkLines:
    paid, charged = euros(one.outside.network_cost), euros(one.outside.usage_income)
    return {
        "country": one.country,
        "network": codes.view(one.network, one.code),
        "lines": one.lines,
        "covered": one.covered,
        "mis_steered": one.mis_steered,
        "share_mis_steered": round(100 * one.mis_steered / one.lines, 1),
        "cost_outside": paid,
        "charged_outside": charged,
        "network_cost_outside": paid,
        "usage_income_outside": charged,
    }


def outside_lines(
    audit: CoverageAudit, page: Sequence[UncoveredLine], steering: Mapping[str, LineSteering], now: float
) -> list[OutsideLine]:
    """The rows of a page, each with what to do at `now`, Unix seconds. `steering`: what was done through us until then, by ICCID."""
    return [outside_line(row, audit, audit.adviser.advise(row, steering, now)) for row in page]


def outside_line(row: UncoveredLine, audit: CoverageAudit, advice: LineAdvice) -> OutsideLine:
    one = row.judged
    return {
        "iccid": one.line.iccid,
        "account_id": one.line.account_id,
        "verdict": one.verdict,
        "judged_by": one.by,
        "country": one.country,
        "network": audit.codes.view(one.network, one.sighting.code),
        "seen": rfc3339_utc(one.sighting.seen or 0),
        "zones": list(one.zones),
        "could_use": [
            {**audit.codes.view(option.network, None), "network_cost_per_mib": None if option.rate is None else euros(option.rate)}
            for option in row.options
        ],
        "outside": outside_use(row),
        "steering_list": row.steering_list,
        "offer": offered_package(audit, advice),
        **advice_figures(one.line.iccid, advice, audit.codes),
    }


def outside_use(row: UncoveredLine) -> OutsideUse | None:
    if row.outside is None:
        return None
    paid, charged = euros(row.outside.network_cost), euros(row.outside.usage_income)
    return {"bytes": row.outside.data_bytes, "cost": paid, "charged": charged, "network_cost": paid, "usage_income": charged}


def offered_package(audit: CoverageAudit, advice: LineAdvice) -> OfferedPackage | None:
    packages = audit.adviser.packages
    offer = None if packages is None else packages.offer(advice.template_id)
    return None if offer is None else {"zone_id": offer.zone_id, "template_id": offer.template_id, "package_income": euros(offer.cost)}


COVERAGE_CHART_COUNTRIES = 12


def coverage_sheet(found: Finding[Coverage]) -> Sheet:
    """The report. Mis-steered lines come first, since they are paid for twice."""
    data = found["data"]
    return {
        "title": "Network coverage",
        "headline": coverage_headline(data),
        "figures": coverage_figures(found),
        "charts": [coverage_country_chart(data)],
        "tables": [coverage_networks_table(data), coverage_lines_table(data)],
    }


def coverage_headline(data: Coverage) -> str:
    totals = data["totals"]
    wrong = totals["mis_steered"] + totals["outside_zone"] + totals["no_package"]
    if not wrong:
        return f"All {totals['covered']} lines that were seen lately are on networks that their packages cover."
    return (
        f"{totals['mis_steered']} lines are steered to networks outside their packages, {totals['outside_zone']} are where their packages "
        f"do not work, and {totals['no_package']} have no package; in 28 days networks charged {data['network_cost_outside']:.2f} EUR "
        f"for that, and customers paid {data['usage_income_outside']:.2f} EUR."
    )


def coverage_figures(found: Finding[Coverage]) -> list[Figure]:
    data, totals = found["data"], found["data"]["totals"]
    return [
        {"label": "Lines looked into", "kind": "number", "value": found["sampled"]},
        {"label": "Covered", "kind": "number", "value": totals["covered"]},
        {"label": "Mis-steered", "kind": "number", "value": totals["mis_steered"]},
        {"label": "Outside their zone", "kind": "number", "value": totals["outside_zone"]},
        {"label": "Without a package", "kind": "number", "value": totals["no_package"]},
        {"label": "Not seen in 7 days", "kind": "number", "value": totals["not_seen_lately"] + totals["never_seen"]},
        {"label": "Network cost outside packages", "kind": "money", "value": data["network_cost_outside"]},
        {"label": "Usage income outside packages", "kind": "money", "value": data["usage_income_outside"]},
    ]


def coverage_country_chart(data: Coverage) -> Chart:
    sums: dict[str, list[int]] = {}
    for row in data["networks"]:
        if row["country"] is not None:
            known = sums.setdefault(row["country"], [0, 0, 0])
            known[0] += row["covered"]
            known[1] += row["mis_steered"]
            known[2] += row["lines"] - row["covered"] - row["mis_steered"]
    places = sorted(sums, key=lambda country: (-sums[country][1], -sum(sums[country]), country))[:COVERAGE_CHART_COUNTRIES]
    labels = ("Covered", "Mis-steered", "Not covered otherwise")
    series: list[Series] = [{"label": label, "values": [sums[country][at] for country in places]} for at, label in enumerate(labels)]
    return stacked_chart("Lines by country", places, series, places_kind="country")


def coverage_networks_table(data: Coverage) -> Table:
    return sheet_table(
        "Networks",
        {
            "Country": "country",
            "Network": "network",
            "Operator": "text",
            "Lines": "number",
            "Mis-steered": "number",
            "Share mis-steered": "percent",
            "Network cost outside": "money",
            "Usage income outside": "money",
        },
        [coverage_network_row(row) for row in data["networks"]],
        f"{data['more_networks']} networks more." if data["more_networks"] else None,
    )


def coverage_network_row(row: NetworkLines) -> list[SheetValue]:
    network, told = (
        row["network"],
        [row["lines"], row["mis_steered"], row["share_mis_steered"], row["network_cost_outside"], row["usage_income_outside"]],
    )
    return [row["country"], coverage_code_text(network), network.get("operator"), *told]


def coverage_lines_table(data: Coverage) -> Table:
    return sheet_table(
        "Lines that are not covered",
        {
            "Line": "line",
            "Verdict": "word",
            "Country": "country",
            "Network": "network",
            "Seen": "day",
            "Bytes outside": "bytes",
            "Network cost outside": "money",
            "Usage income outside": "money",
            "What to do": "word",
            "Why": "word",
            "Saving for the operator": "money",
            "Saving for the customer": "money",
        },
        [coverage_line_row(row) for row in data["lines"]],
        f"{data['more_lines']} lines more." if data["more_lines"] else None,
    )


def coverage_line_row(row: OutsideLine) -> list[SheetValue]:
    outside = row["outside"]
    use: list[SheetValue] = [None] * 3 if outside is None else [outside["bytes"], outside["network_cost"], outside["usage_income"]]
    verdict, action, why = (word.replace("_", " ") for word in (row["verdict"], row["action"], row["why"]))
    place = row["country"], coverage_code_text(row["network"]), row["seen"][:10]
    return [row["iccid"], verdict, *place, *use, action, why, row["saving_operator"], row["saving_customer"]]


def coverage_code_text(network: NetworkTold) -> str:
    return f"{network['mcc']}-{network['mnc']}"
