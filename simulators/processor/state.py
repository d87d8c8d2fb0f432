"""Everything the simulated processor knows at one moment: accounts, what each holds, events, and the webhooks that wait.

Plain data, so that it can be kept in a file. Whoever takes a turn calls `enter_turn` first: that is where its time comes from.
"""

from dataclasses import dataclass, field
from hashlib import sha512
from typing import Annotated

from pydantic import Field

from simulators.processor.entities import AccountBook, AccountLink, JsonObject, OAuthCode, ProcessorAccount, StoredAnswer
from simulators.processor.webhooks import WebhookQueue

PROCESSOR_API_VERSION = "2026-10-28.endive"
ID_LETTERS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PROCESSOR_ID_LENGTH = 24


@dataclass(slots=True)
class ProcessorState:
    seed: int = 1
    at: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """The time of this turn."""
    offset: Annotated[float, Field(allow_inf_nan=False)] = 0.0
    """How far the processor's clock is ahead of the wall's."""
    pages_url: str = ""
    live: bool = False
    request: str | None = None
    request_key: str | None = None
    """The API call that is being answered, and its idempotency key: events name both."""
    platform: str = ""
    client_id: str = ""
    accounts: dict[str, ProcessorAccount] = field(default_factory=dict[str, ProcessorAccount])
    books: dict[str, AccountBook] = field(default_factory=dict[str, AccountBook])
    events: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Oldest first; `account` is absent in the platform's own."""
    pending: list[str] = field(default_factory=list[str])
    """Events that no webhook was made of yet, oldest first."""
    hooks: WebhookQueue = field(default_factory=WebhookQueue)
    codes: dict[str, OAuthCode] = field(default_factory=dict[str, OAuthCode])
    visits: dict[str, AccountLink] = field(default_factory=dict[str, AccountLink])
    answers: dict[str, StoredAnswer] = field(default_factory=dict[str, StoredAnswer])
    """By account, a line break, and idempotency key."""
    counters: dict[str, int] = field(default_factory=dict[str, int])

    def now(self) -> int:
        return int(self.at)

    def new_id(self, prefix: str, length: int = PROCESSOR_ID_LENGTH) -> str:
        """The next id, which the seed and the number of ids before it decide."""
        count = self.counters.get(prefix, 0) + 1
        self.counters[prefix] = count
        number = int.from_bytes(sha512(f"{self.seed}|{prefix}|{count}".encode()).digest())
        letters: list[str] = []
        for _ in range(length):
            number, place = divmod(number, len(ID_LETTERS))
            letters.append(ID_LETTERS[place])
        return prefix + "".join(letters)

    def book(self, account: str) -> AccountBook:
        return self.books.setdefault(account, AccountBook())


def enter_turn(state: ProcessorState, *, now: float, pages_url: str, live: bool) -> None:
    """Begins a turn: `now` is the time outside in Unix seconds. The processor's time does not go back."""
    state.at = max(state.at, now + state.offset)
    state.pages_url, state.live = pages_url, live
    state.request = state.request_key = None


def make_processor_state(*, now: float, pages_url: str, live: bool, seed: int) -> ProcessorState:
    """A state with a platform account, to which no account is connected."""
    state = ProcessorState(seed=seed, at=now, pages_url=pages_url, live=live)
    state.platform = state.new_id("acct_1", 15)
    state.client_id = state.new_id("ca_")
    state.accounts[state.platform] = ProcessorAccount(
        id=state.platform,
        created=state.now(),
        kind="standard",
        email="platform@example.com",
        name="Simulated platform",
        charges_enabled=True,
        payouts_enabled=True,
        details_submitted=True,
        capabilities={"card_payments": "active", "transfers": "active"},
        interval="manual",
        bank=state.new_id("ba_"),
        swept=state.now() // 86400,
    )
    return state


def emit_event(state: ProcessorState, type: str, object: JsonObject, account: str, previous: JsonObject | None = None) -> JsonObject:
    """Adds an event, and queues it for the webhook. `account`: the one in whose books it happened."""
    data: JsonObject = {"object": object}
    if previous is not None:
        data["previous_attributes"] = previous
    event: JsonObject = {
        "id": state.new_id("evt_"),
        "object": "event",
        "api_version": PROCESSOR_API_VERSION,
        "created": state.now(),
        "data": data,
        "livemode": state.live,
        "pending_webhooks": 1,
        "request": {"id": state.request, "idempotency_key": state.request_key},
        "type": type,
    }
    if account != state.platform:
        event["account"] = account
    state.events[str(event["id"])] = event
    state.pending.append(str(event["id"]))
    return event
