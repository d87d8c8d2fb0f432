"""Where an order stands, in a buyer's words, and how soon its page looks again."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from operations.services.shop.texts import Texts


class Standing(NamedTuple):
    """`mark` is the picture beside the words, `step` how many of the three steps are done; `fresh`: it will change by itself."""

    title: str
    lead: str
    mark: str
    step: int
    fresh: bool = False


STANDINGS: Mapping[str, Standing] = {
    "pending_payment": Standing("order.title_pending", "order.lead_pending", "wait", 0, fresh=True),
    "paid": Standing("order.title_working", "order.lead_working", "wait", 1, fresh=True),
    "provisioning": Standing("order.title_working", "order.lead_working", "wait", 1, fresh=True),
    "ready": Standing("order.title_ready", "order.lead_ready", "good", 3),
    "needs_review": Standing("order.title_review", "order.lead_review", "look", 1, fresh=True),
    "failed": Standing("order.title_failed", "order.lead_failed", "bad", 0),
    "rollback_pending": Standing("order.title_going_back", "order.lead_going_back", "look", 0, fresh=True),
    "rolled_back": Standing("order.title_back", "order.lead_back", "bad", 0),
    "rollback_unknown": Standing("order.title_unclear", "order.lead_unclear", "look", 0),
}
OLD = "order.lead_pending_old"
HOUR = 3600.0
PATIENCE: Sequence[tuple[float, int]] = ((120.0, 4), (600.0, 10), (HOUR, 30))
"""Up to which age of an order its page looks again after how many seconds: 15 a minute at most, of the 60 that an address may ask."""


def renews_after(age: float) -> int:
    """Seconds until the page of an order of this age looks again by itself; 0: never."""
    return next((seconds for until, seconds in PATIENCE if age < until), 0)


def steps_of(standing: Standing, texts: Texts) -> Sequence[tuple[str, str, str]]:
    """Name, kind and state of each of the three steps, while there are any to be shown."""
    names = (texts.say("order.step_paid"), texts.say("order.step_made"), texts.say("order.step_ready"))
    words = {"done": texts.say("order.step_done"), "now": texts.say("order.step_now"), "later": texts.say("order.step_later")}
    kinds = ["done" if place < standing.step else "now" if place == standing.step else "later" for place in range(len(names))]
    return [(name, kind, words[kind]) for name, kind in zip(names, kinds, strict=True)]
