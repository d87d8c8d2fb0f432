"""Whether a plan of a shop can be sold now, by the rules of the account that its eSIM would be drawn from. It changes nothing.

Choice: what it asks the charging system is kept for a while, since everybody may ask: the free eSIMs for five seconds, the template
and the list of accounts for a minute, as everywhere.
"""

from typing import Literal, Protocol

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.reseller import AccountStock
from clients.ocs.wire.template import Template
from operations.deps import Deps
from operations.services.network.reached import AccountGone, Upstream
from operations.services.network.templates import find_template
from operations.services.network.upstream import reach_for
from registry.errors import NotFound
from storage.money.connect import connected
from storage.network.connections import UpstreamRow, find_connection
from storage.shop.storefront_plans import StorefrontPlan
from storage.shop.storefronts import Storefront

Reason = Literal[
    "storefront_not_published",
    "plan_not_on_sale",
    "owner_not_connected",
    "payments_not_active",
    "account_not_found",
    "template_not_visible",
    "no_free_esim",
]
FREE = 0
FRESH_SECONDS = 5.0


class Drawn(Protocol):
    """What an eSIM is drawn for: a plan, or an order of one."""

    @property
    def account_id(self) -> int | None:
        """The account it names, if it does."""
        ...


async def reasons_against(deps: Deps, shop: Storefront, plan: StorefrontPlan) -> list[Reason]:
    """Why an order of this plan would come to nothing; empty when it can be sold. A charging system that fails is an OcsError."""
    payee = await deps.store.read(connected, organisation=shop.organisation)
    owner = await deps.store.read(find_connection, organisation=shop.organisation)
    ours: list[tuple[Reason, bool]] = [
        ("storefront_not_published", shop.status != "published"),
        ("plan_not_on_sale", not plan.on_sale),
        ("payments_not_active", payee is None or payee.status != "active"),
    ]
    reasons: list[Reason] = [reason for reason, holds in ours if holds]
    if not is_whole(owner):
        return [*reasons, "owner_not_connected"]
    return reasons + await against_drawing(deps, await reach_for(deps, shop.organisation), plan)


def is_whole(owner: UpstreamRow | None) -> bool:
    """Whether the owner can be reached at all: a connection that lacks its half is none."""
    return owner is not None and owner.mode is not None and (owner.own_token if owner.mode == "own" else owner.account_id) is not None


async def against_drawing(deps: Deps, upstream: Upstream, plan: StorefrontPlan) -> list[Reason]:
    """What the charging system has against it."""
    try:
        account = await account_of_plan(upstream, plan)
        stock = await stock_of(deps, upstream, account)
    except (AccountGone, OcsNotFound):
        return ["account_not_found"]
    try:
        template = await find_template(upstream, plan.template_id, "package_template_id")
    except NotFound:
        return ["template_not_visible"]
    return [] if free_of(stock, template) > 0 else ["no_free_esim"]


async def account_of_plan(upstream: Upstream, plan: Drawn) -> int:
    """The account an eSIM of the plan is drawn from: the plan's, else the connected one, else the lowest of the token's own.

    AccountGone where it is not, or no longer, the owner's.
    """
    if plan.account_id is not None:
        if await upstream.owns_account(plan.account_id):
            return plan.account_id
        raise AccountGone(
            f"The plan draws from account {plan.account_id}, which is not the organisation's; nothing was drawn",
            hint="Put the plan without account_id, or with one of list_reseller_accounts: upsert_storefront_plan",
        )
    if upstream.account_id is not None:
        return upstream.account_id
    accounts = await upstream.accounts()
    found = accounts[0].get("id") if accounts else None
    if found is None:
        raise AccountGone("The charging system knows no account of the organisation's token, so there is nothing to draw from")
    return found


async def stock_of(deps: Deps, upstream: Upstream, account: int) -> AccountStock:
    """The account's eSIMs as they are counted there."""

    async def count() -> AccountStock:
        rows = await upstream.ocs.reseller.esim_status_per_account(account_id=account)
        return next((row for row in rows if row.get("id") == account), {"id": account, "sponsor": []})

    moment = int(deps.clock.monotonic() // FRESH_SECONDS)
    return await upstream.reads.get((upstream.identity, "stock", account, moment), count)


def free_of(stock: AccountStock, template: Template) -> int:
    """The free eSIMs that a package of this template fits on: those of its sponsor, where it names one."""
    sponsor = template.get("sponsors", {}).get("sponsorid")
    fitting = [each for each in stock.get("sponsor", []) if sponsor is None or each.get("id") in (None, sponsor)]
    counted = [status for each in fitting for status in each.get("esim", {}).get("status", [])]
    return sum(status.get("count", 0) for status in counted if status.get("statusNum") == FREE)
