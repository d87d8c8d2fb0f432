"""Whether a plan of a shop can be sold now, or added to an order's eSIM, by the rules of the account that eSIMs are drawn from.

It changes nothing. Choice: what it asks the charging system is kept for a while, since everybody may ask: the free eSIMs for five
seconds, the template and the list of accounts for a minute, as everywhere.
"""

from collections.abc import Mapping
from typing import Literal, Protocol

from clients.ocs.outcome import OcsNotFound
from clients.ocs.wire.reseller import AccountStock
from clients.ocs.wire.template import Template
from operations.deps import Deps
from operations.ledger.rollback import find_issued_line
from operations.ledger.stock import STOCK_FREE_STATUS
from operations.upstream.connection import AccountGone, Upstream, upstream_of_organisation
from operations.upstream.templates import find_template, own_templates
from registry.errors import NotFound
from storage.connect_accounts import find_connect_account
from storage.engine.connection import Connection
from storage.issuance import IssuanceRow, find_issuance
from storage.orders import OrderRow, order_cancelled_at, order_status_of
from storage.storefront_plans import StorefrontPlan, plans_on_sale
from storage.storefronts import Storefront, storefront_of
from storage.upstream_connections import UpstreamRow, find_upstream

ReadinessReason = Literal[
    "storefront_not_published",
    "plan_not_on_sale",
    "owner_not_connected",
    "payments_not_active",
    "account_not_found",
    "template_not_visible",
    "no_free_esim",
]
STOCK_COUNT_FRESH_SECONDS = 5.0


class NamesDrawAccount(Protocol):
    """What an eSIM is drawn for: a plan, or an order of one."""

    @property
    def account_id(self) -> int | None:
        """The account it names, if it does."""
        ...


async def reasons_against_sale(deps: Deps, shop: Storefront, plan: StorefrontPlan) -> list[ReadinessReason]:
    """Why an order of this plan would come to nothing; empty when it can be sold. A charging system that fails is an OcsError."""
    payee = await deps.store.read(find_connect_account, organisation=shop.organisation)
    owner = await deps.store.read(find_upstream, organisation=shop.organisation)
    ours: list[tuple[ReadinessReason, bool]] = [
        ("storefront_not_published", shop.status != "published"),
        ("plan_not_on_sale", not plan.on_sale),
        ("payments_not_active", payee is None or payee.status != "active"),
    ]
    reasons: list[ReadinessReason] = [reason for reason, holds in ours if holds]
    if not is_owner_connected(owner):
        return [*reasons, "owner_not_connected"]
    return reasons + await network_reasons_against(deps, await upstream_of_organisation(deps, shop.organisation), plan)


def is_owner_connected(owner: UpstreamRow | None) -> bool:
    """Whether the owner can be reached at all: a connection that lacks its half is none."""
    return owner is not None and owner.mode is not None and (owner.own_token if owner.mode == "own" else owner.account_id) is not None


async def network_reasons_against(deps: Deps, upstream: Upstream, plan: StorefrontPlan) -> list[ReadinessReason]:
    """What the charging system has against it."""
    try:
        account = await account_of_sold_plan(upstream, plan)
        stock = await count_account_stock(deps, upstream, account)
    except (AccountGone, OcsNotFound):
        return ["account_not_found"]
    try:
        template = await find_template(upstream, plan.template_id, "package_template_id")
    except NotFound:
        return ["template_not_visible"]
    return [] if count_fitting_esims(stock, template) > 0 else ["no_free_esim"]


async def account_of_sold_plan(upstream: Upstream, plan: NamesDrawAccount) -> int:
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


async def count_account_stock(deps: Deps, upstream: Upstream, account: int) -> AccountStock:
    """The account's eSIMs as they are counted there."""

    async def count() -> AccountStock:
        rows = await upstream.ocs.reseller.esim_status_per_account(account_id=account)
        return next((row for row in rows if row.get("id") == account), {"id": account, "sponsor": []})

    moment = int(deps.clock.monotonic() // STOCK_COUNT_FRESH_SECONDS)
    return await upstream.reads.get((upstream.identity, "stock", account, moment), count)


def count_fitting_esims(stock: AccountStock, template: Template) -> int:
    """The free eSIMs that a package of this template fits on: those of its sponsor, where it names one."""
    sponsor = template.get("sponsors", {}).get("sponsorid")
    fitting = [each for each in stock.get("sponsor", []) if sponsor is None or each.get("id") in (None, sponsor)]
    counted = [status for each in fitting for status in each.get("esim", {}).get("status", [])]
    return sum(status.get("count", 0) for status in counted if status.get("statusNum") == STOCK_FREE_STATUS)


async def addable_plans(deps: Deps, order: OrderRow) -> list[StorefrontPlan]:
    """As the shop displays them; empty when nothing can be added. A charging system that fails is an OcsError."""
    if order_status_of(order) != "ready" or order_cancelled_at(order) is not None:
        return []
    plans = await deps.store.read(published_plans, storefront=order.storefront)
    row = await deps.store.read(find_issuance, organisation=order.organisation, key=order.id)
    if not plans or row is None or row.state != "issued":
        return []
    upstream = await upstream_of_organisation(deps, order.organisation)
    if await find_issued_line(upstream, row) is None:
        return []
    templates = {id: template for template in await own_templates(upstream) if (id := template.get("prepaidpackagetemplateid"))}
    return [plan for plan in plans if fits_issued_esim(plan, row, templates)]


def published_plans(connection: Connection, *, storefront: str) -> list[StorefrontPlan]:
    """What the shop sells; a shop that was taken off the web sells nothing."""
    shop = storefront_of(connection, storefront=storefront)
    return [] if shop is None or shop.status != "published" else plans_on_sale(connection, storefront=storefront)


def fits_issued_esim(plan: StorefrontPlan, row: IssuanceRow, templates: Mapping[int, Template]) -> bool:
    """Whether the template is there, is of one package, and goes on this SIM.

    Choice: nothing tells a SIM's sponsor, but the template that it was drawn with is of the same one. Where that is gone, or says
    nothing, only packages of the very same template are sure to go on it.
    """
    template, first = templates.get(plan.template_id), templates.get(row.template_id)
    if template is None or template.get("recurring"):
        return False
    if plan.template_id == row.template_id:
        return True
    sponsor = None if first is None else sponsor_of_template(first)
    return sponsor is not None and sponsor_of_template(template) == sponsor


def sponsor_of_template(template: Template) -> int | None:
    """Whose SIMs its packages go on."""
    return template.get("sponsors", {}).get("sponsorid")
