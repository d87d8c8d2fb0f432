"""The page of an order: how far it is, its eSIM and how to install it, what is left of it, and what a buyer can add or cancel."""

import base64
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast
from urllib.parse import quote

import anyio
from starlette.responses import Response

from operations.languages import LanguageTexts, datetime_to_show
from operations.ledger.esims import fits_qr_code, phone_lpa_text, qr_picture
from operations.storefronts.sales.checkout import NotForSale, ShopNotReady, SoldOut, addable_plans, begin_top_up
from registry.errors import Refusal
from storage.orders import OrderRow, find_order, top_ups_of
from storage.storefronts import storefront_of
from transports.web.shop.brand import Brand, brand_of, plain_text
from transports.web.shop.request import ShopRequest, shop_not_found
from transports.web.shop.storefront import OfferedPlan, offer_of, refusal_word


class OrderStanding(NamedTuple):
    """`mark` is the picture beside the words, `step` how many of the three steps are done; `fresh`: it will change by itself."""

    title: str
    lead: str
    mark: str
    step: int
    fresh: bool = False


ORDER_STANDINGS: Mapping[str, OrderStanding] = {
    "pending_payment": OrderStanding("order.title_pending", "order.lead_pending", "wait", 0, fresh=True),
    "paid": OrderStanding("order.title_working", "order.lead_working", "wait", 1, fresh=True),
    "provisioning": OrderStanding("order.title_working", "order.lead_working", "wait", 1, fresh=True),
    "ready": OrderStanding("order.title_ready", "order.lead_ready", "good", 3),
    "needs_review": OrderStanding("order.title_review", "order.lead_review", "look", 1, fresh=True),
    "failed": OrderStanding("order.title_failed", "order.lead_failed", "bad", 0),
    "rollback_pending": OrderStanding("order.title_going_back", "order.lead_going_back", "look", 0, fresh=True),
    "rolled_back": OrderStanding("order.title_back", "order.lead_back", "bad", 0),
    "rollback_unknown": OrderStanding("order.title_unclear", "order.lead_unclear", "look", 0),
}
OLD_ORDER_LEAD = "order.lead_pending_old"
OLD_ORDER_SECONDS = 3600.0
REFRESH_SECONDS: Sequence[tuple[float, int]] = ((120.0, 4), (600.0, 10), (OLD_ORDER_SECONDS, 30))
"""Up to which age of an order its page looks again after how many seconds: 15 a minute at most, of the 60 that an address may ask."""


def renews_after(age: float) -> int:
    """Seconds until the page of an order of this age looks again by itself; 0: never."""
    return next((seconds for until, seconds in REFRESH_SECONDS if age < until), 0)


def order_steps(standing: OrderStanding, texts: LanguageTexts) -> Sequence[tuple[str, str, str]]:
    """Name, kind and state of each of the three steps, while there are any to be shown."""
    names = (texts.say("order.step_paid"), texts.say("order.step_made"), texts.say("order.step_ready"))
    words = {"done": texts.say("order.step_done"), "now": texts.say("order.step_now"), "later": texts.say("order.step_later")}
    kinds = ["done" if place < standing.step else "now" if place == standing.step else "later" for place in range(len(names))]
    return [(name, kind, words[kind]) for name, kind in zip(names, kinds, strict=True)]


# Universal links: iOS 17.4 and newer, Android 10 and newer with Google's services. Older ones show a page that says so.
IPHONE_LINK = "https://esimsetup.apple.com/esim_qrcode_provisioning?carddata="
ANDROID_LINK = "https://esimsetup.android.com/esim_qrcode_provisioning?carddata="


class InstallWays(NamedTuple):
    """`code` is exactly what the picture shows. Whoever has it can install the eSIM."""

    code: str
    smdp: str
    matching: str
    picture: str
    iphone: str
    android: str


async def install_ways(esim: Mapping[str, object]) -> InstallWays | None:
    """Every way there is; none where the profile has nothing that a phone takes."""
    smdp, matching = str(esim.get("smdp_address") or ""), str(esim.get("matching_id") or "")
    code = phone_lpa_text(cast("str | None", esim.get("activation_code")), smdp, matching)
    if code is None or not fits_qr_code(code):
        return None
    drawn = base64.b64encode(await qr_picture(code, "png")).decode()
    named = quote(code, safe=":$")  # as both makers write it
    return InstallWays(
        code=code,
        smdp=smdp,
        matching=matching,
        picture=f"data:image/png;base64,{drawn}",
        iphone=IPHONE_LINK + named,
        android=ANDROID_LINK + named,
    )


OperationBody = Mapping[str, object]
REFUND_WORDS: Mapping[str, str] = {"succeeded": "order.refund_done", "failed": "order.refund_failed"}
TOP_UP_WORDS: Mapping[str, str] = {
    "paid": "top_up.state_working",
    "provisioning": "top_up.state_working",
    "ready": "top_up.state_ready",
    "needs_review": "top_up.state_review",
    "failed": "top_up.state_failed",
}
MOVING_STATES = ("paid", "provisioning")


class UsageView(NamedTuple):
    """`percent` of the data is left; where none was to be had, `label` is empty."""

    left: str
    used: str
    until: str
    percent: int
    label: str


class TopUpLine(NamedTuple):
    """A top-up that was paid for. `moving`: it is on its way."""

    name: str
    price: str
    day: str
    state: str
    moving: bool
    created: float


def usage_view(told: OperationBody, texts: LanguageTexts, now: float) -> UsageView:
    """What is left, as the charging system counts it. Data that can be used no more need not be used up: its time may be over."""
    used, total, left = (cast(int, told[name] or 0) for name in ("usedBytes", "totalBytes", "remainingBytes"))
    ends = cast(str | None, told["expiresAt"])
    over = ends is not None and datetime_to_show(ends).timestamp() <= now
    percent = 0 if not total else max(0, min(100, left * 100 // total))
    return UsageView(
        left=left_text(used, total, left, texts, over=over),
        used=texts.say("usage.used", used=texts.bytes(used)),
        until=until_text(ends, texts, over=over),
        percent=percent,
        label=texts.say("usage.left_label", percent=percent) if total else "",
    )


def left_text(used: int, total: int, left: int, texts: LanguageTexts, *, over: bool) -> str:
    """How much data is left, in one line. Packages that count no data are not called empty."""
    if over and not left:
        return texts.say("usage.over")
    if not total:
        return texts.say("usage.uncounted")
    if not left and used >= total:
        return texts.say("usage.none_left", total=texts.bytes(total))
    return texts.say("usage.left", left=texts.bytes(left), total=texts.bytes(total))


def until_text(ends: str | None, texts: LanguageTexts, *, over: bool) -> str:
    if ends is None:
        return texts.say("usage.not_started")
    return texts.say("usage.ended" if over else "usage.until", moment=texts.moment(ends))


def top_up_line(row: OperationBody, texts: LanguageTexts) -> TopUpLine:
    status = str(row["status"])
    return TopUpLine(
        name=plain_text(str(cast(OperationBody, row["plan"])["name"])),
        price=texts.money(cast(int, row["amount"]), str(row["currency"])),
        day=texts.day(str(row["created"])),
        state=texts.say(TOP_UP_WORDS.get(status, "top_up.state_review")),
        moving=status in MOVING_STATES,
        created=datetime_to_show(str(row["created"])).timestamp(),
    )


def refund_text(refund: OperationBody | None, currency: str, texts: LanguageTexts) -> str:
    """What became of the money; empty where none is owed."""
    if refund is None:
        return ""
    amount = cast(int, refund["amount"] or 0)
    if not amount:
        return texts.say("order.refund_none")
    return texts.say(REFUND_WORDS.get(str(refund["status"]), "order.refund_owed"), amount=texts.money(amount, currency))


CHARGING_SYSTEM_PATIENCE = 5.0
"""Seconds that a page waits for the charging system before it says that it cannot tell."""
RECENT_PAYMENT_SECONDS = 900.0


class OrderView(NamedTuple):
    """An order as the operations tell it, its row, and its shop's looks."""

    told: OperationBody
    row: OrderRow
    brand: Brand


async def show_order(visit: ShopRequest) -> Response:
    found = await load_order(visit)
    if found.brand.slug != visit.slug:
        return visit.redirect(f"{found.brand.slug}/orders/{visit.order}")
    return await page_of_order(visit, found)


async def load_order(visit: ShopRequest) -> OrderView:
    """The order of the path, whichever shop the path names.

    Choice: a shop that is not published any more goes on showing its buyers what they bought; and whatever shop is named, the reader is
    led to the order's own: the link in a mail is all that a buyer has, and its shop may have another address by now.
    """
    told = cast(OperationBody, await visit.ask("get_storefront_order", {"order_id": visit.token}))
    store = visit.deps.store
    row = await store.read(find_order, order=str(told["number"]))
    shop = None if row is None else await store.read(storefront_of, storefront=row.storefront)
    if row is None or shop is None or (visit.names_number and visit.order != row.id):
        raise shop_not_found()  # a cookie that opens another order was not set by us
    return OrderView(told, row, brand_of(shop._asdict()))


async def page_of_order(visit: ShopRequest, order: OrderView, *, problem: tuple[str, str] | None = None, status: int = 200) -> Response:
    """Everything that can be said of it. `problem`: title and text of what was not done."""
    told, texts = order.told, visit.texts
    esim = cast(OperationBody | None, told["esim"])
    open_for_more = told["status"] == "ready" and told["cancelled_at"] is None
    lines = [top_up_line(row, texts) for row in cast(Sequence[OperationBody], told["top_ups"])]
    begun: Sequence[float] = await unpaid_top_ups(visit, order.row.id) if open_for_more else ()
    wait = seconds_until_refresh(visit, order, [*begun, *(line.created for line in lines if line.moving)])
    facts = {
        "here": f"{visit.shop_path}/orders/{visit.order}",
        "number": order.row.id,
        "keep": "order.keep_link" if visit.token == visit.order else "order.keep_mail",
        "shop_path": visit.shop_path,
        "device": visit.device,
        "problem": problem,
        "wait": wait,
        "esim": esim is not None,
        "iccid": None if esim is None else esim["iccid"],
        "install": None,
        "open": open_for_more,
        "waiting": bool(begun),
        "top_ups": lines,
        **progress_facts(visit, order),
        **bought_facts(visit, order),
    }
    if esim is not None:
        install = await install_ways(esim)
        facts |= {"install": install} if install is not None else {"lead": "install.missing"}
        facts |= await live_facts(visit, cast(OfferedPlan, told["plan"]), open_for_more=open_for_more)
    return visit.page("order.html", facts, order.brand, status, {"Refresh": str(wait)} if wait and problem is None else {})


def progress_facts(visit: ShopRequest, order: OrderView) -> OperationBody:
    told, texts = order.told, visit.texts
    standing = ORDER_STANDINGS[str(told["status"])]
    refund = cast(OperationBody | None, told["refund"])
    closed = told["cancelled_at"] is not None and told["status"] == "ready"
    return {
        "standing": standing,
        "lead": OLD_ORDER_LEAD
        if told["status"] == "pending_payment" and visit.now - order.row.created > OLD_ORDER_SECONDS
        else standing.lead,
        "steps": order_steps(standing, texts) if standing.mark == "wait" else (),
        "back": refund_text(refund, str(told["currency"]), texts),
        "refund_failed": refund is not None and refund["status"] == "failed",
        "closed": texts.say("order.closed", moment=texts.moment(str(told["cancelled_at"]))) if closed else "",
    }


def bought_facts(visit: ShopRequest, order: OrderView) -> OperationBody:
    """What it is, whatever the shop sells by now."""
    told = order.told
    sold = {**cast(OfferedPlan, told["plan"]), "price_cents": told["amount"], "currency": told["currency"]}
    return {"plan": offer_of(sold, {}, visit.texts), "ordered": visit.texts.day(str(told["created"]))}


def seconds_until_refresh(visit: ShopRequest, order: OrderView, moving: Sequence[float]) -> int:
    """Until the page looks again by itself; 0: never. `moving`: when the top-ups were begun that are on their way.

    Whoever reads how to install an eSIM is not to be thrown back to the top every few seconds because of a payment they gave up.
    """
    began = max(moving, default=0.0)
    if ORDER_STANDINGS[str(order.told["status"])].fresh:
        began = max(began, order.row.created)
    return renews_after(visit.now - began)


async def unpaid_top_ups(visit: ShopRequest, number: str) -> Sequence[float]:
    """When somebody went to pay for more data, as far as it is a short while ago: the news of it may come after the buyer."""
    rows = await visit.deps.store.read(top_ups_of, order=number)
    return [row.created for row in rows if row.status == "pending_payment" and visit.now - row.created < RECENT_PAYMENT_SECONDS]


async def live_facts(visit: ShopRequest, sold: OfferedPlan, *, open_for_more: bool) -> dict[str, object]:
    """What the charging system says at this moment, asked for at once; what it does not say in time is not known."""
    usage, options = list[object](), list[object]()
    named = {"order_id": visit.token}

    async def ask(operation: str, answers: list[object]) -> None:
        try:
            with anyio.move_on_after(CHARGING_SYSTEM_PATIENCE):
                answers.append(await visit.ask(operation, named))
        except Refusal:
            return

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "get_storefront_order_usage", usage)
        if open_for_more:
            tasks.start_soon(ask, "get_storefront_order_top_up_options", options)
    plans = cast(Sequence[OfferedPlan], options[0]) if options else ()
    return {
        "usage": usage_view(cast(OperationBody, usage[0]), visit.texts, visit.now) if usage else None,
        "options": [offer_of(plan, {}, visit.texts) for plan in nearest_plans(plans, sold)],
        "options_known": bool(options),
    }


def nearest_plans(plans: Sequence[OfferedPlan], sold: OfferedPlan) -> Sequence[OfferedPlan]:
    """What was bought comes first, then what works there too; the rest as the shop has it."""
    there = set(cast(Sequence[str], sold["countries"]))
    return sorted(plans, key=lambda plan: (plan["slug"] != sold["slug"], there.isdisjoint(cast(Sequence[str], plan["countries"]))))


TOP_UP_REFUSAL_WORDS: Mapping[str, str] = {
    NotForSale.code: "gone",
    ShopNotReady.code: "not_now",
    SoldOut.code: "sold_out",
}


async def post_top_up(visit: ShopRequest) -> Response:
    """Only the plan's slug is read of the form."""
    order = await load_order(visit)
    await visit.context.pipeline.rate_limiter.order(visit.client)
    try:
        plans = await addable_plans(visit.deps, order.row)
        plan = next((plan for plan in plans if plan.slug == visit.form.get("plan", "")), None)
        if plan is None:
            return await top_up_refused(visit, order, "top_up", 409)
        begun = await begin_top_up(visit.deps, order=order.row, plan=plan, language=visit.texts.language, now=visit.now)
    except Refusal as refusal:
        return await top_up_refused(visit, order, refusal_word(refusal, TOP_UP_REFUSAL_WORDS, "top_up"), refusal.status)
    # The processor leads back to the order's number: this browser opens it by what opened it now.
    return visit.to_checkout(begun.url, order.row.id, visit.token)


async def top_up_refused(visit: ShopRequest, order: OrderView, word: str, status: int) -> Response:
    say = visit.texts.say
    return await page_of_order(visit, order, problem=(say(f"refused.{word}_title"), say(f"refused.{word}")), status=status)


async def post_cancel(visit: ShopRequest) -> Response:
    """Recorded once; then the order again, which says so."""
    order = await load_order(visit)
    await visit.ask("cancel_storefront_order", {"order_id": visit.token})
    return visit.redirect(f"{order.brand.slug}/orders/{visit.order}")
