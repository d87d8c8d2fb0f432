"""Which plan an intent names, and whether its caller may have it issued."""

import re
from typing import NamedTuple

from operations.connectivity.plans import TEST_PLANS, priced_catalogue
from operations.connectivity.products import no_such_product, plan_of
from operations.connectivity.shapes import Plan
from operations.deps import Ctx
from operations.services.issuing.purpose import require_kept
from operations.services.network.reached import AccountGone, Upstream
from operations.services.network.templates import find_template
from operations.services.network.upstream import reach
from registry.errors import NotFound, OcsConflict, OrgNotConnected, UpgradeRequired
from registry.limits import Scope
from registry.policy import require_connection
from storage.issuing.issuance import IssuanceRow
from storage.issuing.products import ProductRow, find_product
from storage.people.directory import StoreDirectory

SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)


class LiveChoice(NamedTuple):
    """A plan that draws an eSIM from stock: a product of the caller's, or a slug of the live catalogue that is yet to be looked up."""

    id: str
    product: ProductRow | None


class LivePlan(NamedTuple):
    """A plan with what is drawn for it, and from where."""

    plan: Plan
    template_id: int
    account_id: int


async def choose_plan(ctx: Ctx, plan: str) -> Plan | LiveChoice:
    """The test plan, or a live one that the caller may have issued: scope first, then existence, then the connection.

    Choice: whether a slug is there is asked after the replay, since a plan that has left the catalogue has its answer all the same.
    """
    test = TEST_PLANS.get(plan)
    if test is not None:
        return test
    named = plan.startswith("cnp_")
    if not named and not SLUG.fullmatch(plan):
        raise no_such_plan()
    try:
        ctx.need(Scope.WRITE, ctx.deps.site)
    except UpgradeRequired as refusal:
        refusal.hint = "Test plans work on every tier: test_global_1gb, test_eu_1gb"
        raise
    product = await ctx.deps.store.read(find_product, product=plan, organisation=ctx.organisation) if named else None
    if named and product is None:
        raise no_such_product("plan")
    try:
        await require_connection(ctx.caller, StoreDirectory(ctx.deps.store), ctx.deps.site)
    except OrgNotConnected as refusal:
        refusal.hint = "Test plans need no account: use test_global_1gb or test_eu_1gb; list_connectivity_plans names every plan"
        raise
    ctx.stage()
    return LiveChoice(plan, product)


async def still_own(ctx: Ctx, row: IssuanceRow | None) -> None:
    """What was drawn from an account that is no longer the caller's is not shown again by a repeated call (abuse case 6)."""
    if row is not None and not await (await reach(ctx)).owns_account(row.account_id):
        raise NotFound(
            "This eSIM was drawn from an account that your organisation has no more",
            param="plan",
            hint="Connect the account again, or use a new key to draw from the one you have",
        )
    require_kept(row)


async def live_plan(ctx: Ctx, upstream: Upstream, choice: LiveChoice) -> LivePlan:
    """What to draw, or a refusal: the product's template and account, or the catalogue's plan of that name."""
    product = choice.product
    if product is None:
        for template_id, plan in (await priced_catalogue(ctx, upstream)).items():
            if plan["id"] == choice.id:
                return LivePlan(plan, template_id, await own_account(upstream))
        raise no_such_plan()
    await find_template(upstream, product.package_template_id, "plan")
    account = product.account_id
    if account is None:
        account = await own_account(upstream)
    elif not await upstream.owns_account(account):
        raise AccountGone(
            f"The product draws from account {account}, which is not yours; nothing was drawn",
            hint="Define a product without account_id, or with one of list_reseller_accounts",
        )
    return LivePlan(plan_of(product), product.package_template_id, account)


async def own_account(upstream: Upstream) -> int:
    """Where to draw from when nobody says. Choice: a token with several accounts draws from the one with the lowest number."""
    if upstream.account_id is not None:
        return upstream.account_id
    accounts = await upstream.accounts()
    found = accounts[0].get("id") if accounts else None
    if found is None:
        raise OcsConflict(
            "The charging system knows no account of your token, so there is nothing to draw from",
            hint="Have your provider make one, or define the product with the account_id to draw from",
            before_execution=True,
        )
    return found


def no_such_plan() -> NotFound:
    """Choice: a plan that does not exist is 404 with `param`, as a foreign one is."""
    return NotFound(
        "There is no plan with this id", param="plan", hint="Use test_global_1gb or test_eu_1gb, or an id of list_connectivity_plans"
    )
