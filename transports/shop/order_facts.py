"""Parts of an order in a buyer's words: its data, its top-ups, money that goes back."""

from collections.abc import Mapping
from typing import NamedTuple, cast

from operations.services.shop.texts import Texts, moment_of
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


def usage_of(told: Told, texts: Texts, now: float) -> Usage:
    """What is left, as the charging system counts it. Data that can be used no more need not be used up: its time may be over."""
    used, total, left = (cast(int, told[name] or 0) for name in ("usedBytes", "totalBytes", "remainingBytes"))
    ends = cast(str | None, told["expiresAt"])
    over = ends is not None and moment_of(ends).timestamp() <= now
    percent = 0 if not total else max(0, min(100, left * 100 // total))
    return Usage(
        left=left_of(used, total, left, texts, over=over),
        used=texts.say("usage.used", used=texts.bytes(used)),
        until=until_of(ends, texts, over=over),
        percent=percent,
        label=texts.say("usage.left_label", percent=percent) if total else "",
    )


def left_of(used: int, total: int, left: int, texts: Texts, *, over: bool) -> str:
    """The one line that a buyer came for. Packages that count no data are not said to be empty."""
    if over and not left:
        return texts.say("usage.over")
    if not total:
        return texts.say("usage.uncounted")
    if not left and used >= total:
        return texts.say("usage.none_left", total=texts.bytes(total))
    return texts.say("usage.left", left=texts.bytes(left), total=texts.bytes(total))


def until_of(ends: str | None, texts: Texts, *, over: bool) -> str:
    """How long it is good for, or was."""
    if ends is None:
        return texts.say("usage.not_started")
    return texts.say("usage.ended" if over else "usage.until", moment=texts.moment(ends))


def line_of(row: Told, texts: Texts) -> TopUpLine:
    """A top-up as the operations tell it."""
    status = str(row["status"])
    return TopUpLine(
        name=plain(str(cast(Told, row["plan"])["name"])),
        price=texts.money(cast(int, row["amount"]), str(row["currency"])),
        day=texts.day(str(row["created"])),
        state=texts.say(STATES.get(status, "top_up.state_review")),
        moving=status in MOVING,
        created=moment_of(str(row["created"])).timestamp(),
    )


def money_back(refund: Told | None, currency: str, texts: Texts) -> str:
    """What became of the money; empty where none is owed."""
    if refund is None:
        return ""
    amount = cast(int, refund["amount"] or 0)
    if not amount:
        return texts.say("order.refund_none")
    return texts.say(REFUNDS.get(str(refund["status"]), "order.refund_owed"), amount=texts.money(amount, currency))
