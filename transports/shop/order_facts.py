"""Parts of an order in a buyer's words: its data, its top-ups, money that goes back."""

from collections.abc import Mapping
from typing import NamedTuple, cast

from operations.services.shop_texts import Texts
from transports.shop.plain_text import plain

Told = Mapping[str, object]
REFUNDS: Mapping[str, str] = {"succeeded": "order.refund_done", "failed": "order.refund_failed"}
STATES: Mapping[str, str] = {
    "paid": "top_up.state_working",
    "provisioning": "top_up.state_working",
    "ready": "top_up.state_ready",
    "needs_review": "top_up.state_review",
    "failed": "top_up.state_failed",
}
MOVING = ("paid", "provisioning")


class Usage(NamedTuple):
    """`percent` of the data is left; texts that do not apply are empty."""

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


def usage_of(told: Told, texts: Texts) -> Usage:
    """What is left, as the charging system counts it."""
    used, total, left = (cast(int, told[name] or 0) for name in ("usedBytes", "totalBytes", "remainingBytes"))
    ends = cast(str | float | None, told["expiresAt"])
    percent = 0 if not total else max(0, min(100, left * 100 // total))
    whole = texts.bytes(total)
    return Usage(
        left=texts.say("usage.left", left=texts.bytes(left), total=whole) if left else texts.say("usage.none_left", total=whole),
        used=texts.say("usage.used", used=texts.bytes(used)),
        until=texts.say("usage.not_started") if ends is None else texts.say("usage.until", moment=texts.moment(ends)),
        percent=percent,
        label=texts.say("usage.left_label", percent=percent),
    )


def line_of(row: Told, texts: Texts) -> TopUpLine:
    """A top-up as the operations tell it."""
    status = str(row["status"])
    return TopUpLine(
        name=plain(str(cast(Told, row["plan"])["name"])),
        price=texts.money(cast(int, row["amount"]), str(row["currency"])),
        day=texts.day(str(row["created"])),
        state=texts.say(STATES.get(status, "top_up.state_review")),
        moving=status in MOVING,
    )


def money_back(refund: Told | None, currency: str, texts: Texts) -> str:
    """What became of the money; empty where none is owed."""
    if refund is None:
        return ""
    amount = cast(int, refund["amount"] or 0)
    if not amount:
        return texts.say("order.refund_none")
    return texts.say(REFUNDS.get(str(refund["status"]), "order.refund_owed"), amount=texts.money(amount, currency))
