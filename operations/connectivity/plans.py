"""Plans: what an intent can be created with."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from operations.connectivity.products import plan_of
from operations.connectivity.shapes import Plan
from operations.deps import Ctx
from operations.services.network.live_plans import live_plans
from operations.services.network.reached import Upstream
from operations.services.network.upstream import reach
from operations.vocabulary import ListOf, StartingAfter, page
from registry.model import Input
from registry.operation import Example, operation
from storage.issuing.products import list_products

EUROPE = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
PRODUCT = "cnp_"
MOST_PRODUCTS = 1000
GLOBAL = "AE AU BR CA CH CN DE ES FR GB IN IT JP KR MX SG TH TR US ZA"


def test_plan(id: Literal["test_global_1gb", "test_eu_1gb"], name: str, countries: str) -> Plan:
    """One gigabyte, 30 days, no price: nothing is sold."""
    return {
        "id": id,
        "object": "connectivity.plan",
        "name": name,
        "data_mb": 1000,
        "unlimited": False,
        "validity_days": 30,
        "countries": countries.split(),
        "livemode": False,
        "price": None,
    }


TEST_PLANS: Mapping[str, Plan] = {
    "test_global_1gb": test_plan("test_global_1gb", "Test Global 1 GB", GLOBAL),
    "test_eu_1gb": test_plan("test_eu_1gb", "Test Europe 1 GB", EUROPE),
}


class PlanPage(Input):
    """Which part of the list."""

    limit: Annotated[int, Field(ge=1, le=100, description="Page size.")] = 100
    starting_after: StartingAfter = None


@operation(
    "GET",
    "/v1/connectivity/plans",
    reaches_out=True,
    title="List plans",
    examples=[
        Example(
            "What can an eSIM be issued for?",
            {"limit": 1},
            {"object": "list", "data": [TEST_PLANS["test_global_1gb"]], "has_more": True},
        )
    ],
)
async def list_connectivity_plans(ctx: Ctx, params: PlanPage) -> ListOf[Plan]:
    """List the plans an eSIM can be issued for: test, your products, live catalogue.

    Their `id` is the `plan` of create_connectivity_intent. Test plans are free and touch no network.

    list_connectivity_products gives your own products alone. The live catalogue has one plan per package template of the connected
    account; without a connected account it is left out. `price` is never charged by issuing an eSIM; it is null on test plans and
    on live plans that no product of yours prices. `data_mb` is in megabytes of 10^6 bytes.
    """
    after = params.starting_after
    parts: list[Plan] = []
    if after is None or after in TEST_PLANS:
        named = list(TEST_PLANS)
        parts = list(TEST_PLANS.values())[0 if after is None else named.index(after) + 1 :]
        after = None
    if len(parts) <= params.limit and (after is None or after.startswith(PRODUCT)):
        most = params.limit + 1 - len(parts)
        rows = await ctx.deps.store.read(list_products, organisation=ctx.organisation, after=after, most=most)
        parts += [plan_of(row) for row in rows]
        after = None
    if len(parts) <= params.limit and ctx.caller.connection is not None:
        parts += after_slug(await live_catalogue(ctx), after)
    return page(parts, params.limit)


def after_slug(plans: list[Plan], after: str | None) -> list[Plan]:
    """The plans behind one; all of them when it is not there any more."""
    names = [plan["id"] for plan in plans]
    return plans[names.index(after) + 1 :] if after in names else plans


async def live_catalogue(ctx: Ctx) -> list[Plan]:
    """The connected account's plans."""
    return list((await priced_catalogue(ctx, await reach(ctx))).values())


async def priced_catalogue(ctx: Ctx, upstream: Upstream) -> dict[int, Plan]:
    """By template number; each with the price of the newest product that prices its template."""
    found = await live_plans(upstream)
    products = await ctx.deps.store.read(list_products, organisation=ctx.organisation, after=None, most=MOST_PRODUCTS)
    for row in reversed(products):
        plan = found.get(row.package_template_id)
        if plan is not None:
            found[row.package_template_id] = {**plan, "price": plan_of(row)["price"]}
    return found
