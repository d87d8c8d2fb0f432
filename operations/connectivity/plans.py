"""Plans: what an intent can be created with. Test plans, products, and one live plan per package template of the connected account."""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from operations.connectivity.products import Product, compared_plans, find_own_product, list_own_products, product_plan
from operations.deps import Ctx
from operations.plans import BYTES_PER_MB, Plan, offered_plan, product_not_found
from operations.upstream.connection import AccountGone, Upstream, connect_upstream, require_connected
from operations.upstream.resellers import find_template, own_templates, zone_countries
from operations.vocabulary import ListOf, LongListPage, list_page
from registry.errors import NotFound, OcsConflict, OrgNotConnected, UpgradeRequired
from registry.operation import Example, Scope, operation
from storage.package_adaptations import PackageTerms
from storage.products import list_products

PLAN_SLUG_GAPS = re.compile(r"[^a-z0-9]+")
NAMELESS_PLAN_SLUG = "plan"


async def read_live_plans(upstream: Upstream) -> dict[int, Plan]:
    """Live plans by template number, lowest first; a minute old at most, their countries two. Waits for the network."""
    templates = await own_templates(upstream)
    countries = await zone_countries(upstream)
    slugs: set[str] = set()
    found: dict[int, Plan] = {}
    for id, template in sorted(
        (template["prepaidpackagetemplateid"], template) for template in templates if "prepaidpackagetemplateid" in template
    ):
        name = template.get("prepaidpackagetemplatename", "").strip()
        slug = plan_slug(name, id, slugs)
        slugs.add(slug)
        found[id] = offered_plan(
            slug,
            name or slug,
            data_mb=template.get("databyte", 0) // BYTES_PER_MB,
            validity_days=template.get("perioddays", 0),
            countries=countries.get(template.get("locationzoneid"), []),
        )
    return found


def plan_slug(name: str, id: int, slugs: Iterable[str]) -> str:
    """`Nordic 1GB 30d` becomes `nordic-1gb-30d`. Choice: of equal names the lowest number has the plain slug, the others append theirs."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    slug = PLAN_SLUG_GAPS.sub("-", plain).strip("-")[:60].strip("-") or NAMELESS_PLAN_SLUG
    return f"{slug}-{id}" if slug in slugs or slug == NAMELESS_PLAN_SLUG else slug


TEST_PLAN_EUROPE = "AT BE BG CY CZ DE DK EE ES FI FR GR HR HU IE IT LT LU LV MT NL PL PT RO SE SI SK"
PRODUCT_PREFIX = "cnp_"
PRODUCT_LIST_LIMIT = 1000
TEST_PLAN_GLOBAL = "AE AU BR CA CH CN DE ES FR GB IN IT JP KR MX SG TH TR US ZA"
TEST_PLANS: Mapping[str, Plan] = {
    id: offered_plan(id, name, data_mb=1000, validity_days=30, countries=countries.split(), livemode=False)
    for id, name, countries in (
        ("test_global_1gb", "Test Global 1 GB", TEST_PLAN_GLOBAL),
        ("test_eu_1gb", "Test Europe 1 GB", TEST_PLAN_EUROPE),
    )
}


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
async def list_connectivity_plans(ctx: Ctx, params: LongListPage) -> ListOf[Plan]:
    """List the plans an eSIM can be issued for: test, your products, live catalogue.

    Their `id` is the `plan` of create_connectivity_intent. Test plans are free and touch no network.

    list_connectivity_products gives your own products alone. The live catalogue has one plan per package template of the connected
    account; without a connected account it is left out. `warnings` of a product say how it differs from its template. `price` is never
    charged by issuing an eSIM; it is null on test plans and on live plans that no product of yours prices. `data_mb` is in megabytes of
    10^6 bytes.
    """
    after = params.starting_after
    parts: list[Plan] = []
    if after is None or after in TEST_PLANS:
        named = list(TEST_PLANS)
        parts = list(TEST_PLANS.values())[0 if after is None else named.index(after) + 1 :]
        after = None
    if len(parts) <= params.limit and (after is None or after.startswith(PRODUCT_PREFIX)):
        most = params.limit + 1 - len(parts)
        products = await ctx.deps.store.read(list_own_products, organisation=ctx.organisation, after=after, most=most)
        parts += await compared_plans(ctx, products)
        after = None
    if len(parts) <= params.limit and ctx.caller.connection is not None:
        plans = list((await priced_live_plans(ctx, await connect_upstream(ctx))).values())
        names = [plan["id"] for plan in plans]
        parts += plans[names.index(after) + 1 :] if after in names else plans  # all of them where the last one that was seen is gone
    return list_page(parts, params.limit)


async def priced_live_plans(ctx: Ctx, upstream: Upstream) -> dict[int, Plan]:
    """Live plans by template number, each with the price of the newest product for its template. Waits for the network."""
    found = await read_live_plans(upstream)
    products = await ctx.deps.store.read(list_products, organisation=ctx.organisation, after=None, most=PRODUCT_LIST_LIMIT)
    for row in reversed(products):
        plan = found.get(row.package_template_id)
        if plan is not None:
            found[row.package_template_id] = {**plan, "price": product_plan(Product(row, adapt=False))["price"]}
    return found


PLAN_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*", re.ASCII)


class LivePlanChoice(NamedTuple):
    """A plan that draws an eSIM from stock: a product of the caller's, or a slug of the live catalogue that is yet to be looked up."""

    id: str
    product: Product | None


class LivePlan(NamedTuple):
    """A plan with what is drawn for it, and from where. `terms`: what its package is set to, where it is not to stay as it is made."""

    plan: Plan
    template_id: int
    account_id: int
    terms: PackageTerms | None = None


async def choose_plan(ctx: Ctx, plan: str) -> Plan | LivePlanChoice:
    """The test plan, or a live one that the caller may have issued: scope first, then existence, then the connection.

    Choice: whether a slug is there is asked after the replay, since a plan that has left the catalogue has its answer all the same.
    """
    test = TEST_PLANS.get(plan)
    if test is not None:
        return test
    named = plan.startswith("cnp_")
    if not named and not PLAN_SLUG.fullmatch(plan):
        raise plan_not_found()
    try:
        ctx.need(Scope.WRITE, ctx.deps.site)
    except UpgradeRequired as refusal:
        refusal.hint = "Test plans work on every tier: test_global_1gb, test_eu_1gb"
        raise
    product = await ctx.deps.store.read(find_own_product, product=plan, organisation=ctx.organisation) if named else None
    if named and product is None:
        raise product_not_found("plan")
    try:
        await require_connected(ctx)
    except OrgNotConnected as refusal:
        refusal.hint = "Test plans need no account: use test_global_1gb or test_eu_1gb; list_connectivity_plans names every plan"
        raise
    ctx.stage()
    return LivePlanChoice(plan, product)


async def find_live_plan(ctx: Ctx, upstream: Upstream, choice: LivePlanChoice) -> LivePlan:
    """Template and account of the product, or of the catalogue's plan. Raises NotFound or AccountGone. Waits for the network."""
    product = choice.product
    if product is None:
        for template_id, plan in (await priced_live_plans(ctx, upstream)).items():
            if plan["id"] == choice.id:
                return LivePlan(plan, template_id, await default_account(upstream))
        raise plan_not_found()
    row = product.row
    await find_template(upstream, row.package_template_id, "plan")
    account = row.account_id
    if account is None:
        account = await default_account(upstream)
    elif not await upstream.owns_account(account):
        raise AccountGone(
            f"The product draws from account {account}, which is not yours; nothing was drawn",
            hint="Define a product without account_id, or with one of list_reseller_accounts",
        )
    return LivePlan(product_plan(product), row.package_template_id, account, product.terms)


async def default_account(upstream: Upstream) -> int:
    """The account to draw from where none is named. Choice: of several accounts, the one with the lowest number."""
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


def plan_not_found() -> NotFound:
    """Choice: an unknown plan is 404 with `param`, as a foreign one is."""
    return NotFound(
        "There is no plan with this id", param="plan", hint="Use test_global_1gb or test_eu_1gb, or an id of list_connectivity_plans"
    )
