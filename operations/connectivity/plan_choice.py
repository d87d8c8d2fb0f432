"""Which plan an intent names, and whether its caller may have it issued."""

import re

from operations.connectivity.plans import TEST_PLANS, live_catalogue
from operations.connectivity.products import no_such_product
from operations.connectivity.shapes import Plan
from operations.deps import Ctx
from operations.services.issuance import live_not_offered
from registry.errors import NotFound, OrgNotConnected
from registry.limits import Scope
from registry.policy import require_connection
from storage.directory import StoreDirectory
from storage.products import find_product

SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)


async def choose_plan(ctx: Ctx, plan: str) -> Plan:
    """The test plan, or the refusal of a live one: scope first, then existence, then the connection."""
    test = TEST_PLANS.get(plan)
    if test is not None:
        return test
    product = plan.startswith("cnp_")
    if not product and not SLUG.fullmatch(plan):
        raise no_such_plan()
    ctx.need(Scope.WRITE, ctx.deps.site)
    if product and await ctx.deps.store.read(find_product, product=plan, organisation=ctx.organisation) is None:
        raise no_such_product("plan")
    try:
        await require_connection(ctx.caller, StoreDirectory(ctx.deps.store), ctx.deps.site)
    except OrgNotConnected as refusal:
        refusal.hint = "Test plans need no account: use test_global_1gb or test_eu_1gb; list_connectivity_plans names every plan"
        raise
    if not product and all(live["id"] != plan for live in await live_catalogue(ctx)):
        raise no_such_plan()
    raise live_not_offered()


def no_such_plan() -> NotFound:
    """Choice: a plan that does not exist is 404 with `param`, as a foreign one is."""
    return NotFound(
        "There is no plan with this id", param="plan", hint="Use test_global_1gb or test_eu_1gb, or an id of list_connectivity_plans"
    )
