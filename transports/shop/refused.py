"""What a shop does not do, in words for somebody who wanted to buy something."""

from collections.abc import Mapping

from registry.errors import Refusal
from transports.shop.answers import Page
from transports.shop.visit import Visit

BY_STATUS: Mapping[int, tuple[str, str]] = {
    403: ("refused.form_title", "refused.form"),
    404: ("refused.not_found_title", "refused.not_found"),
    405: ("refused.method_title", "refused.method"),
    429: ("refused.too_many_title", "refused.too_many"),
    502: ("refused.busy_title", "refused.busy"),
    503: ("refused.busy_title", "refused.busy"),
}
OTHER = ("refused.other_title", "refused.other")
KEPT = ("Allow", "Retry-After")


def page_of(refusal: Refusal, visit: Visit) -> Page:
    """The page that says why not. Of what is not there it is the same for everybody, so that nothing is learned from it."""
    title, text = BY_STATUS.get(refusal.status, OTHER)
    texts, wait = visit.texts, int(refusal.headers.get("Retry-After", "60"))
    facts = {
        "title": texts.say(title),
        "text": texts.count(text, wait) if refusal.status == 429 else texts.say(text),
        "back": "" if refusal.status == 404 or not visit.slug else visit.shop_path,
    }
    kept = {name: value for name, value in refusal.headers.items() if name in KEPT}
    return Page("problem.html", facts, status=refusal.status, headers=kept)
