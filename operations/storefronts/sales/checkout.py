"""A sale: whether a plan can be sold now, or added to an order's eSIM, and its beginning.

What is sold is stored, a page to pay it is made at the processor, and only then is anybody sent there. Everything of money is read from
our own rows in the transaction that stores the order; a request says which plan, and nothing else.

Whether a plan can be sold is decided by the rules of the account that eSIMs are drawn from, and changes nothing. Choice: what it asks the
charging system is kept for a while, since everybody may ask: the free eSIMs for five seconds, the template and the list of accounts for
a minute, as everywhere.
"""

from collections.abc import Awaitable, Mapping
from typing import Literal, NamedTuple, NotRequired, TypeVar

import anyio
import orjson
from typing_extensions import TypedDict

from clients.ocs.resellers import AccountStock
from clients.ocs.templates import Template
from clients.payments.records import CheckoutSession, NewCheckout
from operations.deps import Deps
from operations.ledger.orders import log_order_created, new_order_token
from operations.ledger.payment_accounts import platform_fee_bps_of
from operations.ledger.rollback import find_issued_line
from operations.ledger.stock_snapshot import STOCK_FREE_STATUS
from operations.plans import BYTES_PER_MB
from operations.upstream.connection import AccountGone, Upstream, upstream_of_organisation
from operations.upstream.resellers import find_template, own_templates
from operations.vocabulary import share_of
from registry.caller import ANONYMOUS_CALLER
from registry.errors import Conflict, NotFound, OcsError, OcsNotFound, PaymentsError, PaymentsRefused, Refusal, StoreUnavailable
from registry.ids import ORDER_NUMBER_PREFIX
from registry.ports import AuditRecord
from storage.audit import append_audit_record
from storage.connect_accounts import find_connect_account
from storage.engine.sql import Connection
from storage.issuance import IssuanceRow, find_issuance
from storage.orders import NewOrder, OrderRow, find_order, insert_order, name_session, order_cancelled_at, order_status_of
from storage.package_adaptations import PackageTerms, adapted_among
from storage.storefronts import Storefront, StorefrontPlan, named_plan, plans_on_sale, storefront_of
from storage.top_ups import takes_top_ups
from storage.upstream_connections import find_upstream

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


async def reasons_against_sale(deps: Deps, shop: Storefront, plan: StorefrontPlan) -> list[ReadinessReason]:
    """What stands against selling `plan` now; empty when it can be sold. Raises OcsError where the charging system fails."""
    payee = await deps.store.read(find_connect_account, organisation=shop.organisation)
    owner = await deps.store.read(find_upstream, organisation=shop.organisation)
    ours: list[tuple[ReadinessReason, bool]] = [
        ("storefront_not_published", shop.status != "published"),
        ("plan_not_on_sale", not plan.on_sale),
        ("payments_not_active", payee is None or payee.status != "active"),
    ]
    reasons: list[ReadinessReason] = [reason for reason, holds in ours if holds]
    # A connection that lacks its half is none.
    if owner is None or owner.mode is None or (owner.own_token if owner.mode == "own" else owner.account_id) is None:
        return [*reasons, "owner_not_connected"]
    return reasons + await network_reasons_against(deps, await upstream_of_organisation(deps, shop.organisation), plan)


async def network_reasons_against(deps: Deps, upstream: Upstream, plan: StorefrontPlan) -> list[ReadinessReason]:
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


async def account_of_sold_plan(upstream: Upstream, plan: StorefrontPlan | OrderRow) -> int:
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

    async def count() -> AccountStock:
        rows = await upstream.ocs.reseller.esim_status_per_account(account_id=account)
        return next((row for row in rows if row.get("id") == account), {"id": account, "sponsor": []})

    moment = int(deps.clock.monotonic() // STOCK_COUNT_FRESH_SECONDS)
    return await upstream.reads.get((upstream.identity, "stock", account, moment), count)


def count_fitting_esims(stock: AccountStock, template: Template) -> int:
    """The free eSIMs that a package of this template fits on: those of its sponsor, where it names one."""
    sponsor = sponsor_of_template(template)
    fitting = [each for each in stock.get("sponsor", []) if sponsor is None or each.get("id") in (None, sponsor)]
    counted = [status for each in fitting for status in each.get("esim", {}).get("status", [])]
    return sum(status.get("count", 0) for status in counted if status.get("statusNum") == STOCK_FREE_STATUS)


async def addable_plans(deps: Deps, order: OrderRow) -> list[StorefrontPlan]:
    """The plans that can be added to the eSIM of `order`, as its shop shows them. Raises OcsError where the charging system fails."""
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
    return template.get("sponsors", {}).get("sponsorid")


TimelyAnswer = TypeVar("TimelyAnswer")
BEGIN_ORDER, BEGIN_TOP_UP = "begin_order", "begin_top_up"
CHECKOUT_OPEN_SECONDS = 3600
CHECKOUT_LOOK_SECONDS = 600
"""Choice: when the processor is asked about a page that was opened, should it not tell by itself."""
SALE_CREATED = 201
SALE_PATIENCE_SECONDS = 8.0
"""Seconds that a buyer waits for the charging system, which may take minutes, before anything is stored."""


class NotForSale(Conflict):
    """The shop does not sell this plan, or not any more."""

    code = "not_for_sale"


class SoldOut(Conflict):
    """There is no eSIM left for it."""

    code = "sold_out"


class ShopNotReady(Conflict):
    """The shop's owner has something to mend before anything can be sold."""

    code = "shop_not_ready"


class OrderNotReady(Conflict):
    """Only an eSIM that the buyer has can be given more data."""

    code = "order_not_ready"


class OrderCancelled(Conflict):
    """After a cancel no top-up is taken."""

    code = "order_cancelled"


class PlanNotAddable(Conflict):
    """The plan is none that this order's eSIM can be given."""

    code = "plan_not_addable"


class BegunCheckout(NamedTuple):
    """What was stored, by its number, and where it is paid. `token` opens a new order; it is for the buyer's browser alone."""

    order: str
    url: str
    token: str


class Sale(NamedTuple):
    """What was stored, and where its buyer comes from and goes to: what the processor is told opens nothing."""

    row: NewOrder
    shop: Storefront
    token: str
    operation: str
    text: str
    success_url: str
    cancel_url: str


async def begin_order(deps: Deps, *, shop: Storefront, plan: StorefrontPlan, language: str, now: float) -> BegunCheckout:
    """An order that waits to be paid, and the page to pay it. Raises why the plan cannot be sold now, in a buyer's words.

    Choice: stock is not reserved while somebody pays; whom nothing is left for gets the money back by itself.
    """
    refuse_sale(await ocs_answer_in_time(reasons_against_sale(deps, shop, plan)))
    id = deps.ids.new(ORDER_NUMBER_PREFIX)

    def store(connection: Connection) -> Sale:
        row, found, sold = new_order_row(connection, id, shop.id, plan.id, language, now, top_up_of=None)
        token = new_order_token(connection, ids=deps.ids, order=id, now=now)
        front = f"{deps.site.base_url}/shop/{found.slug}"
        return Sale(row, found, token, BEGIN_ORDER, sold.name, f"{front}/orders/{id}", front)

    return await open_checkout_page(deps, await deps.store.write(store), now)


async def begin_top_up(deps: Deps, *, order: OrderRow, plan: StorefrontPlan, language: str, now: float) -> BegunCheckout:
    """A top-up of `order` that waits to be paid, and the page to pay it. Raises why the plan cannot be added now."""
    require_takes_top_ups(order)
    if plan.id not in {one.id for one in await ocs_answer_in_time(addable_plans(deps, order))}:
        raise plan_not_addable()
    id = deps.ids.secret("tuc_")

    def store(connection: Connection) -> Sale:
        """An order that was cancelled meanwhile takes none."""
        if not takes_top_ups(connection, order=order.id):
            raise top_up_refusal(connection, order.id)
        row, found, sold = new_order_row(connection, id, order.storefront, plan.id, language, now, top_up_of=order.id)
        back = f"{deps.site.base_url}/shop/{found.slug}/orders/{order.id}"
        return Sale(row, found, "", BEGIN_TOP_UP, sold.name, back, back)

    return await open_checkout_page(deps, await deps.store.write(store), now)


async def ocs_answer_in_time(asked: Awaitable[TimelyAnswer]) -> TimelyAnswer:
    """What the charging system says, unless it takes longer than anybody waits; it only reads, so giving up changes nothing."""
    with anyio.move_on_after(SALE_PATIENCE_SECONDS):
        return await asked
    raise OcsError("The charging system did not say in time whether this can be sold; nothing was ordered", code="ocs_timeout")


def refuse_sale(reasons: list[ReadinessReason]) -> None:
    """The first group of reasons that stands in the way; what only the owner can mend is not told in detail to buyers."""
    if "storefront_not_published" in reasons or "plan_not_on_sale" in reasons:
        raise plan_not_for_sale()
    if reasons == ["no_free_esim"]:
        raise SoldOut(
            "The shop has no eSIM left for this plan at the moment; nothing was ordered, and nothing is charged",
            hint="Try again later, or write to the shop",
        )
    if reasons:
        raise shop_not_ready()


def plan_not_for_sale() -> NotForSale:
    return NotForSale("The shop does not sell this plan any more; nothing was ordered", hint="Choose another plan on the shop's page")


def shop_not_ready() -> ShopNotReady:
    return ShopNotReady(
        "The shop cannot take orders of this plan at the moment; nothing was ordered, and nothing is charged",
        hint="Try again later, or write to the shop; its owner sees what is missing at /api/hosted/{slug}/plans/{planId}/readiness",
    )


def plan_not_addable() -> PlanNotAddable:
    return PlanNotAddable(
        "This plan cannot be added to the eSIM of this order; nothing was ordered",
        hint="GET /api/orders/{orderId}/top-up-options lists the plans that can",
    )


def require_takes_top_ups(order: OrderRow) -> None:
    if order.top_up_of is not None:
        raise NotFound("There is no such order", hint="A top-up is for an order: name that one")
    status = order_status_of(order)
    if order_cancelled_at(order) is not None:
        raise OrderCancelled(
            "This order was cancelled, so no more data can be added; nothing was ordered", hint="Buy another eSIM on the shop's page"
        )
    if status != "ready":
        raise OrderNotReady(
            f"Data can be added to an order that is ready, and this one is {status}; nothing was ordered",
            hint="Wait until the order's page shows the eSIM; one that was given back takes nothing any more",
        )


def top_up_refusal(connection: Connection, order: str) -> Refusal:
    found = find_order(connection, order=order)
    if found is None:
        return NotFound("There is no such order")
    try:
        require_takes_top_ups(found)
    except Refusal as refusal:
        return refusal
    return OrderNotReady("The eSIM of this order went back to stock, so no data can be added; nothing was ordered")


def new_order_row(
    connection: Connection, id: str, storefront: str, plan_id: str, language: str, now: float, *, top_up_of: str | None
) -> tuple[NewOrder, Storefront, StorefrontPlan]:
    """Stores an order or top-up with the shop and the plan as our rows are at this moment, and returns the three.

    It is paid into the account that the shop's owner has at this moment, and asked about there for ever.
    """
    shop, plan = storefront_of(connection, storefront=storefront), named_plan(connection, storefront=storefront, named=plan_id)
    if shop is None or plan is None or shop.status != "published" or not plan.on_sale:
        raise plan_not_for_sale()
    payee = find_connect_account(connection, organisation=shop.organisation)
    if payee is None or payee.status != "active":
        raise shop_not_ready()
    row = NewOrder(
        id=id,
        top_up_of=top_up_of,
        organisation=shop.organisation,
        storefront=shop.id,
        plan=plan.id,
        bought=sold_plan_json(plan, adapt=plan.id in adapted_among(connection, offers=[plan.id])),
        template_id=plan.template_id,
        account_id=plan.account_id,
        amount=plan.price_cents,
        currency=shop.currency,
        language=language,
        payee=payee.account,
        created=now,
    )
    insert_order(connection, order=row)
    return row, shop, plan


def sold_plan_json(plan: StorefrontPlan, *, adapt: bool) -> str:
    """The plan as it is sold. `adapt`: its package gets these data and days; it is not shown."""
    sold: dict[str, object] = {name: getattr(plan, name) for name in ("slug", "name", "data_mb", "validity_days")}
    return orjson.dumps(sold | {"countries": orjson.loads(plan.countries)} | ({"adapt": True} if adapt else {})).decode()


class SoldTerms(TypedDict):
    """What of a sold plan its package may be set to."""

    data_mb: int
    validity_days: int
    adapt: NotRequired[bool]


def sold_terms(row: OrderRow) -> PackageTerms | None:
    """What the package of an order or a top-up is set to; None: it stays as its template makes it."""
    sold: SoldTerms = orjson.loads(row.bought)
    return PackageTerms(sold["data_mb"] * BYTES_PER_MB, sold["validity_days"]) if sold.get("adapt") else None


def sale_fee(amount: int, bps: int) -> int:
    """The service's share of `amount`, never more than that."""
    return min(amount, share_of(amount, bps))


async def open_checkout_page(deps: Deps, sale: Sale, now: float) -> BegunCheckout:
    """The page at the processor, known to us before its address is handed out: what fails leaves an order that nobody can pay."""
    fee = sale_fee(sale.row.amount, await platform_fee_bps_of(deps, sale.row.organisation))
    try:
        # Choice: the buyer's address is not filled in: whoever has an order's link need not be who bought it.
        page = NewCheckout(
            key=sale.row.id,
            text=sale.text,
            amount=sale.row.amount,
            currency=sale.row.currency,
            fee=fee,
            success_url=sale.success_url,
            cancel_url=sale.cancel_url,
            promotions=True,
            expires_at=int(now) + CHECKOUT_OPEN_SECONDS,
            metadata={"order": sale.row.id},
        )
        session = await deps.payments.create_checkout(sale.row.payee, page)
        url = session.url
        if url is None:
            raise PaymentsError("The payment processor made a page and did not say where it is; nothing is charged")
    except StoreUnavailable:
        raise
    except Refusal as refusal:
        await deps.store.write(append_audit_record, sale_audit_record(deps, sale, now, refusal))
        if isinstance(refusal, PaymentsRefused | NotFound):
            raise shop_not_ready() from refusal  # its words are about the account, which is the owner's
        raise
    line = sale_audit_record(deps, sale, now, None)
    await deps.store.write(open_order_for_payment, deps=deps, sale=sale, session=session, line=line, now=now)
    return BegunCheckout(sale.row.id, url, sale.token)


def open_order_for_payment(
    connection: Connection, *, deps: Deps, sale: Sale, session: CheckoutSession, line: AuditRecord, now: float
) -> None:
    look_ms = int((now + CHECKOUT_LOOK_SECONDS) * 1000)
    if not name_session(connection, order=sale.row.id, session=session.id, ends=session.expires_at, look_ms=look_ms):
        raise RuntimeError("an order that was stored just now is not there, or has a page already")
    log_order_created(connection, deps, sale.row, sale.shop)
    append_audit_record(connection, line)


def sale_audit_record(deps: Deps, sale: Sale, now: float, refusal: Refusal | None) -> AuditRecord:
    outcome, status = ("ok", SALE_CREATED) if refusal is None else (refusal.error_code, refusal.status)
    spent = max(0.0, deps.clock.now() - now) * 1000
    of = sale.row.organisation
    return AuditRecord(now, of, "web", sale.operation, ANONYMOUS_CALLER.principal, "", outcome, status, spent, deps.ids.new("req_"))
