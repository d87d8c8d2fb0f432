"""The page of economics: what the fleet and the shops bring in, what they cost and what is left, side by side, and what loses most.

The price of a package is a cost of the shop and an income of the fleet, so that what is left of the two may be added up.
"""

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import NamedTuple, cast

from starlette.responses import Response

from operations.intelligence.high_cost_subscribers import FleetCosts
from operations.intelligence.money.bill_figures import LineCost
from operations.network.templates import TemplateRow
from operations.storefronts.storefronts import ShownPlan
from operations.times import utc_today
from registry.clock import rfc3339_utc
from transports.web.console.charts import ChartPoint
from transports.web.console.payments import PaymentRow, day_of_form, look_through, whole_sums
from transports.web.console.request import ConsoleRequest, PageRead, minor_money
from transports.web.console.shops import COMPARED_SHOPS, COMPARED_TEMPLATES, TEMPLATE_FIELDS, plans_in, templates_by_number
from transports.web.site import PageRoute

YESTERDAY = "yesterday"
ECONOMIC_DAYS = (YESTERDAY, "7", "30", "90")
"""Whole days: the last one that is over, or so many that end today."""
LINES_RANKED = 200
"""The dearest lines, among which those that lose most are looked for: no line loses more than it costs."""
LOSERS_SHOWN, BARS_SHOWN = 5, 8
SALES_READ_AT_ONCE, SALES_PAGES = 100, 5
SALES_COUNTED = 500
COST_CURRENCY = "EUR"
TOP_UP_PREFIX = "tuc_"


class LosingLine(NamedTuple):
    """A line that costs more than it brings in, EUR. `country` is an ISO code: where its dearest network is."""

    iccid: str
    income: float
    cost: float
    loss: float
    operator: str
    country: str
    share: float
    help: str


class PlanSales(NamedTuple):
    """What a plan of a shop brought in, minor units. `cost` and `left` are None where the cost of its packages is not known."""

    name: str
    shop: str
    currency: str
    sold: int
    paid: int
    back: int
    fees: int
    cost: int | None

    @property
    def left(self) -> int | None:
        return None if self.cost is None else self.paid - self.back - self.fees - self.cost


class ShopSales(NamedTuple):
    """What was sold, by plan. `whole`: all orders of the days were counted. `fees_unread`: why fees could not be read."""

    plans: Sequence[PlanSales]
    whole: bool
    fees_unread: str
    problem: str


async def show_economics(visit: ConsoleRequest) -> Response:
    """What is left of what the fleet and the shops bring in, and what loses most, and why?"""
    days = visit.query.get("days", "30") if visit.query.get("days") in ECONOMIC_DAYS else "30"
    early = {"days": days, "choices": ECONOMIC_DAYS}
    return await visit.draw_late("economics.html", early, partial(economics_page, visit, days))


async def economics_page(visit: ConsoleRequest, days: str) -> Response:
    """The page for some days, with all that is known of them."""
    window = economic_window(days, utc_today(visit.now))
    fleet = await visit.read("high_cost_subscribers", **window, limit=LINES_RANKED)
    sales = await read_sales(visit, day_of_form(window["start"]) or 0, day_of_form(window["end"], later=1) or visit.now)
    costs = None if fleet.problem is not None else cast(FleetCosts, fleet.body["data"])
    losers = [] if costs is None else losing_lines(visit, costs)
    left_of_fleet, left_of_shop = None if costs is None else costs["margin_with_packages"], left_sum(sales.plans)
    facts: Mapping[str, object] = {
        "days": days,
        "choices": ECONOMIC_DAYS,
        "fleet": fleet,
        "costs": costs,
        "losers": losers[:LOSERS_SHOWN],
        "proven": costs is None or losers_proven(costs, losers),
        "ranked": LINES_RANKED,
        "fleet_bars": [] if costs is None else fleet_points(visit, costs),
        "country_bars": [] if costs is None else country_points(visit, costs),
        "sales": sales,
        "shop_bars": shop_points(visit, sales.plans),
        "plan_bars": plan_points(visit, sales.plans),
        "unknown_cost": sum(plan.cost is None for plan in sales.plans),
        "verdict": biggest_loss_words(visit, losers, sales.plans) if costs is not None or sales.plans else "",
        "together": "" if left_of_fleet is None or not sales.plans else signed_euros(visit, left_of_fleet + left_of_shop / 100),
        "left_of_fleet": "" if left_of_fleet is None else signed_euros(visit, left_of_fleet),
        "left_of_shop": minor_money(visit.texts, left_of_shop, COST_CURRENCY),
        "signed": partial(signed_euros, visit),
        "paid": whole_sums(visit.texts, ((plan.paid, plan.currency) for plan in sales.plans)),
    }
    return visit.draw("economics.html", facts)


def economic_window(chosen: str, today: date) -> Mapping[str, str]:
    """The first and last day of one of ECONOMIC_DAYS, as the operation takes them."""
    first, last = (today - timedelta(days=1),) * 2 if chosen == YESTERDAY else (today - timedelta(days=int(chosen) - 1), today)
    return {"start": first.isoformat(), "end": last.isoformat()}


def signed_euros(visit: ConsoleRequest, amount: float) -> str:
    return minor_money(visit.texts, round(amount * 100), COST_CURRENCY)


def line_margin(line: LineCost) -> float:
    """What is left of a line's income; of one whose packages were not read, without them."""
    margin = line["margin_with_packages"]
    return line["usage_income"] - line["network_cost"] if margin is None else margin


def losing_lines(visit: ConsoleRequest, costs: FleetCosts) -> list[LosingLine]:
    """The lines that lose money, those that lose most first. One whose packages were not read is left out: it may well earn."""
    rows = [line for line in costs["lines"] if line["margin_with_packages"] is not None and line_margin(line) < -0.005]
    found: list[LosingLine] = []
    for line in sorted(rows, key=line_margin):
        dearest = line["networks"][0] if line["networks"] else None
        helps = visit.word("economics", f"action_{line['action']}" if line["action"] != "none" else f"why_{line['why']}")
        found.append(
            LosingLine(
                line["iccid"],
                line["usage_income"] + (line["package_income"] or 0),
                line["network_cost"],
                -line_margin(line),
                dearest["operator"] if dearest is not None else "",
                (dearest["country"] or "") if dearest is not None else "",
                dearest["network_cost"] if dearest is not None else 0,
                helps,
            )
        )
    return found


def losers_proven(costs: FleetCosts, losers: Sequence[LosingLine]) -> bool:
    """Whether no line behind the dearest ones can lose as much as the first of `losers`: none loses more than it costs."""
    if costs["lines_with_cost"] <= len(costs["lines"]):
        return True
    return bool(losers) and losers[0].loss >= costs["lines"][-1]["network_cost"]


def left_over_points(visit: ConsoleRequest, parts: Sequence[tuple[str, float]], left: float | None) -> list[ChartPoint]:
    """A bar for each part, EUR, and one for what is left or missing."""
    named = [(visit.say(f"economics.bar_{name}"), amount) for name, amount in parts]
    if left is not None:
        named.append((visit.say("economics.bar_left" if left >= 0 else "economics.bar_missing"), abs(left)))
    return [ChartPoint(label, amount, visit.euros(amount)) for label, amount in named]


def fleet_points(visit: ConsoleRequest, costs: FleetCosts) -> list[ChartPoint]:
    parts = [("packages", costs["package_income"] or 0.0), ("outside", costs["usage_income"]), ("networks", costs["network_cost"])]
    return left_over_points(visit, parts, costs["margin_with_packages"])


def country_points(visit: ConsoleRequest, costs: FleetCosts) -> list[ChartPoint]:
    """What networks charged by country, the dearest first."""
    found: list[ChartPoint] = []
    for country in costs["countries"][:BARS_SHOWN]:
        name = visit.texts.country(country["country"]) if country["country"] else visit.say("shared.unknown")
        found.append(ChartPoint(country["country"] or "?", country["network_cost"], visit.euros(country["network_cost"]), name))
    return found


def in_euros(plans: Sequence[PlanSales]) -> list[PlanSales]:
    """The plans that are sold in the currency of what packages cost."""
    return [plan for plan in plans if plan.currency == COST_CURRENCY]


def left_sum(plans: Sequence[PlanSales]) -> int:
    """What is left of all plans whose costs are known, cents."""
    return sum(plan.left or 0 for plan in in_euros(plans))


def shop_points(visit: ConsoleRequest, plans: Sequence[PlanSales]) -> list[ChartPoint]:
    euros = in_euros(plans)
    if not euros:
        return []
    sums = {name: sum(cast("int | None", getattr(plan, name)) or 0 for plan in euros) / 100 for name in ("paid", "back", "fees", "cost")}
    return left_over_points(visit, list(sums.items()), left_sum(plans) / 100)


def plan_points(visit: ConsoleRequest, plans: Sequence[PlanSales]) -> list[ChartPoint]:
    """What is left of each plan that leaves something, the most first."""
    ranked = sorted(((plan.left or 0, plan) for plan in in_euros(plans)), key=lambda each: -each[0])[:BARS_SHOWN]
    return [ChartPoint(plan.name, left / 100, visit.euros(left / 100)) for left, plan in ranked if left > 0]


def biggest_loss_words(visit: ConsoleRequest, lines: Sequence[LosingLine], plans: Sequence[PlanSales]) -> str:
    """What loses most, and why, in a sentence or two."""
    losing = sorted((plan for plan in in_euros(plans) if (plan.left or 0) < 0), key=lambda plan: plan.left or 0)
    line, plan = lines[0] if lines else None, losing[0] if losing else None
    if plan is not None and (line is None or -(plan.left or 0) / 100 > line.loss):
        facts = {name: minor_money(visit.texts, getattr(plan, name) or 0, plan.currency) for name in ("paid", "back", "fees", "cost")}
        loss = minor_money(visit.texts, -(plan.left or 0), plan.currency)
        return visit.say("economics.worst_plan", name=plan.name, loss=loss, **facts)
    if line is None:
        return visit.say("economics.nothing_loses")
    said = visit.say(
        "economics.worst_line", iccid=line.iccid, loss=visit.euros(line.loss), cost=visit.euros(line.cost), income=visit.euros(line.income)
    )
    if not line.operator:
        return f"{said} {line.help}"
    place = visit.texts.country(line.country) if line.country else visit.say("shared.unknown")
    return f"{said} {visit.say('economics.mostly', operator=line.operator, place=place, part=visit.euros(line.share))} {line.help}"


async def read_sales(visit: ConsoleRequest, since: float, until: float) -> ShopSales:
    """What the shops sold from one moment to before another, Unix seconds, by plan. A refund counts with its sale, whenever it was made."""
    orders, whole, problem = await sold_orders(visit, since, until)
    if not orders:
        return ShopSales([], True, "", problem)
    charges = await look_through(visit, "operator_billing_list_charges", is_sale, oldest=since, most=SALES_COUNTED)
    fees = await look_through(visit, "operator_billing_list_fees", lambda _row: True, oldest=since, most=SALES_COUNTED)
    plans, costs = await sold_plans(visit)
    kept = {str(row["charge"]): cast(int, row["amount"]) - cast(int, row["amount_refunded"]) for row in fees.rows}
    paid = {str(row["order"]): row for row in charges.rows}
    counted = plan_sales(orders, paid, kept, plans, costs)
    top_ups = top_up_sales(visit, [row for row in charges.rows if cast(int, row["created"]) < until], kept)
    fees_unread = "" if fees.problem is None else fees.problem.text
    return ShopSales([*counted, *top_ups], whole and not charges.further, fees_unread, problem)


def is_sale(charge: PaymentRow) -> bool:
    return charge["status"] == "succeeded" and bool(charge["order"])


async def sold_orders(visit: ConsoleRequest, since: float, until: float) -> tuple[list[Mapping[str, object]], bool, str]:
    """The orders that were paid for, whether these are all of them, and why they could not be read."""
    begin, end, before = rfc3339_utc(since), rfc3339_utc(until), len(visit.reads)
    after, orders = dict[str, object](), list[Mapping[str, object]]()
    for _ in range(SALES_PAGES):
        listed = await visit.read("list_storefront_orders", limit=SALES_READ_AT_ONCE, **after)
        del visit.reads[before + 1 :]
        if listed.problem is not None:
            return orders, False, listed.problem.text
        fresh = [row for row in listed.rows if str(row["created"]) >= begin]
        orders += [row for row in fresh if row["paid_at"] and str(row["created"]) < end]
        if len(fresh) < len(listed.rows) or not listed.body.get("has_more"):
            return orders, True, ""
        after = {"starting_after": listed.rows[-1]["id"]}
    return orders, False, ""


async def sold_plans(visit: ConsoleRequest) -> tuple[Mapping[tuple[str, str], ShownPlan], Mapping[int, TemplateRow]]:
    """The plans of our shops by the slugs of shop and plan, and the templates that packages are made from, by their numbers."""
    found = await visit.read_together(
        shops=PageRead("list_storefronts", {"limit": COMPARED_SHOPS}),
        templates=PageRead("list_package_templates", {"limit": COMPARED_TEMPLATES, "fields": TEMPLATE_FIELDS}),
    )
    wholes = await visit.read_together(**{str(row["id"]): PageRead("get_storefront", {"id": row["id"]}) for row in found["shops"].rows})
    plans = {
        (str(shop.body["slug"]), plan["slug"]): plan for shop in wholes.values() if shop.problem is None for plan in plans_in(shop.body)
    }
    return plans, templates_by_number(found["templates"])


def plan_sales(
    orders: Sequence[Mapping[str, object]],
    paid: Mapping[str, PaymentRow],
    fees: Mapping[str, int],
    plans: Mapping[tuple[str, str], ShownPlan],
    templates: Mapping[int, TemplateRow],
) -> list[PlanSales]:
    """What each plan brought in, the most first. An order whose payment is not among `paid` counts with its price."""
    groups: dict[tuple[str, str, str], list[Mapping[str, object]]] = {}
    for order in orders:
        groups.setdefault((str(order["storefront"]), str(order["plan"]), str(order["currency"])), []).append(order)
    found: list[PlanSales] = []
    for (shop, slug, currency), sold in groups.items():
        plan = plans.get((shop, slug))
        price = None if plan is None else templates.get(plan["package_template_id"], TemplateRow()).get("cost")
        given = sum(order["status"] == "ready" for order in sold)
        charges = [(order, paid.get(str(order["id"]))) for order in sold]
        found.append(
            PlanSales(
                slug if plan is None else plan["name"],
                shop,
                currency,
                len(sold),
                sum(cast(int, (order if charge is None else charge)["amount"]) for order, charge in charges),
                sum(returned_of(order, charge) for order, charge in charges),
                sum(fees.get(str(charge["id"]), 0) for _, charge in charges if charge is not None),
                None if price is None or currency != COST_CURRENCY else round(price * 100) * given,
            )
        )
    return sorted(found, key=lambda each: -each.paid)


def returned_of(order: Mapping[str, object], charge: PaymentRow | None) -> int:
    """What went back of an order, minor units."""
    if charge is not None:
        return cast(int, charge["amount_refunded"])
    return cast(int, order["amount"]) if order["refund"] == "succeeded" else 0


def top_up_sales(visit: ConsoleRequest, charges: Sequence[PaymentRow], fees: Mapping[str, int]) -> list[PlanSales]:
    """What top-ups brought in, a row for each currency. Which packages they were, the lists do not tell."""
    groups: dict[str, list[PaymentRow]] = {}
    for charge in charges:
        if str(charge["order"]).startswith(TOP_UP_PREFIX):
            groups.setdefault(str(charge["currency"]), []).append(charge)
    return [
        PlanSales(
            visit.say("economics.top_ups"),
            "",
            currency,
            len(rows),
            sum(cast(int, row["amount"]) for row in rows),
            sum(cast(int, row["amount_refunded"]) for row in rows),
            sum(fees.get(str(row["id"]), 0) for row in rows),
            None,
        )
        for currency, rows in groups.items()
    ]


ECONOMICS_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {"/money/economics": PageRoute(show_economics)}
