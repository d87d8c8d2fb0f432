"""Plans: what an intent can be created with."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from operations.connectivity.products import plan_of
from operations.connectivity.shapes import Plan
from operations.deps import Ctx
from operations.vocabulary import ListOf, StartingAfter, page
from registry.model import Input
from registry.operation import Example, operation
from storage.products import list_products

EUROPE = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
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
    """List the plans an eSIM can be issued for: test plans, then your products.

    Their `id` is the `plan` of create_connectivity_intent. Test plans are free and touch no network.

    list_connectivity_products gives your own products alone.
    `price` is null on test plans and is never charged by issuing an eSIM. `data_mb` is in megabytes of 10^6 bytes.
    """
    tests = list(TEST_PLANS.values())
    after = params.starting_after
    if after is not None:
        named = list(TEST_PLANS)
        tests = tests[named.index(after) + 1 :] if after in TEST_PLANS else []
        after = None if after in TEST_PLANS else after
    most = params.limit + 1 - len(tests)
    rows = await ctx.deps.store.read(list_products, organisation=ctx.organisation, after=after, most=most) if most > 0 else []
    return page(tests + [plan_of(row) for row in rows], params.limit)
