"""Webhooks: each event is posted until it is taken, signed as the real processor signs it."""

import hashlib
import hmac
from dataclasses import dataclass, field

from simulators.seeded_random import seeded_random

SIGNATURE_HEADER = "stripe-signature"
WEBHOOK_BACKOFF_SECONDS = (2, 10, 60, 600, 3_600, 10_800)
WEBHOOK_LIFETIME_SECONDS = 3 * 86_400
WEBHOOK_LOG_SIZE = 1_000


@dataclass(slots=True)
class PendingWebhook:
    """An event that nobody has taken yet. `since` is when it happened, `due` when it is posted next."""

    event: str
    since: float
    due: float
    attempts: int = 0


@dataclass(slots=True)
class WebhookPost:
    event: str
    at: float
    status: int


@dataclass(slots=True)
class WebhookQueue:
    """What waits, what was posted, and how tests and people want it: held back, in another order, twice."""

    waiting: list[PendingWebhook] = field(default_factory=list[PendingWebhook])
    told: list[WebhookPost] = field(default_factory=list[WebhookPost])
    held: bool = False
    shuffled: bool = False
    doubled: bool = False
    rounds: int = 0

    def add(self, event: str, now: float) -> None:
        self.waiting.append(PendingWebhook(event, now, now))

    def has_due(self, now: float) -> bool:
        return not self.held and any(one.due <= now for one in self.waiting)

    def due(self, now: float, seed: int) -> list[str]:
        """Events to be posted now, in the order in which they happened unless that is to be shuffled."""
        found = [one.event for one in self.waiting if not self.held and one.due <= now]
        self.rounds += 1
        if self.doubled:
            found = [one for one in found for _ in range(2)]
        if self.shuffled:
            seeded_random(seed, "hooks", self.rounds).shuffle(found)
        return found

    def note(self, event: str, status: int, now: float) -> None:
        """Records one post. Any 2xx ends the webhook; otherwise it is posted again, until the event is too old."""
        self.told.append(WebhookPost(event, now, status))
        del self.told[:-WEBHOOK_LOG_SIZE]
        one = next((one for one in self.waiting if one.event == event), None)
        if one is None:  # another post of it was taken
            return
        one.attempts += 1
        one.due = now + WEBHOOK_BACKOFF_SECONDS[min(one.attempts, len(WEBHOOK_BACKOFF_SECONDS)) - 1]
        if 200 <= status < 300 or one.due - one.since > WEBHOOK_LIFETIME_SECONDS:
            self.waiting.remove(one)


def sign_webhook(body: bytes, secret: str, now: float) -> dict[str, str]:
    """The headers of a post. The whole text of the secret is the key, its `whsec_` included."""
    moment = int(now)
    digest = hmac.new(secret.encode(), b"%d.%b" % (moment, body), hashlib.sha256).hexdigest()
    return {"content-type": "application/json; charset=utf-8", "user-agent": "Stripe/1.0", SIGNATURE_HEADER: f"t={moment},v1={digest}"}
