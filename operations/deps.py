"""What handlers reach the outside with: one frozen dataclass, made once by the composition root."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from clients.model.port import LanguageModel
from clients.ocs.client import OcsPool
from clients.payments.port import Processor
from clients.webhooks.addresses import NO_PRIVATE_RECEIVERS, IpNetwork, PrivateReceivers
from clients.webhooks.sender import DeliveryAttempt
from operations.caches.answers import ReadCache
from operations.caches.event_watch import EventWatch
from operations.caches.stock import StockSnapshots
from operations.caches.usage import UsageCache
from registry.answer import InternalCalls
from registry.caller import Tier
from registry.clock import Clock
from registry.context import Context
from registry.ids import Ids
from registry.ports import SharedSecrets, Site
from registry.rate_limits import RateLimiter
from storage.engine.store import Store
from storage.fleets import FleetState
from storage.sealing import Keyring

Wake = Callable[[], None]
"""Tells a loop of this process that there is work."""


@dataclass(frozen=True, slots=True)
class Build:
    """Which build of the service this is."""

    version: str
    sha: str


FleetJudge: TypeAlias = Callable[["Deps", FleetState, Sequence[int] | None], Awaitable[int]]
"""Makes and stores the verdicts on the lines of a fleet with these subscriber ids, or on some that are due; how many there were."""


@dataclass(frozen=True, slots=True)
class Deps:
    """The outside world of a call."""

    store: Store
    keyring: Keyring
    clock: Clock
    ids: Ids
    site: Site
    secrets: SharedSecrets
    build: Build
    webhook_exempt: tuple[IpNetwork, ...]
    wake_worker: Wake
    post: Wake
    """Says that a mail was queued."""
    toolsets: tuple[str, ...]
    """The names of toolsets and presets that a key may be restricted to."""
    ocs: OcsPool
    payments: Processor
    reads: ReadCache
    stock: StockSnapshots
    replica: str
    """This process, among those that share the database."""
    rate_limiter: RateLimiter
    weeks: UsageCache
    """What lines used in weeks that have ended."""
    judge: FleetJudge
    watch: EventWatch
    """Wakes who waits for events of an organisation."""
    internal_calls: InternalCalls
    """The pipeline, for calls that a model or a schedule makes for somebody."""
    model: LanguageModel | None = None
    """The language model; None: the service has none."""
    draws: bool = True
    """False where the charging system is simulated in another process: what would be drawn here would be drawn from nothing."""
    own_identity: bool = True
    """People sign in here, at the built-in identity provider; False: at the one that is configured."""
    signup_tier: Tier = Tier.FREE
    """What organisations that sign up may do."""
    webhook_private: PrivateReceivers = NO_PRIVATE_RECEIVERS
    """What webhooks of organisations that the operator named may reach in the operator's own network."""
    callbacks: "CallbackPosts | None" = None
    """Asks receivers of MCP subscriptions whether they want them; None: there are none, and MCP clients poll."""
    network_instance: str = ""
    """The process, where the charging system is simulated in it and gone with it; empty: it is another system."""
    keeps_names: bool = True
    """Whether customers' names are kept in the read model where no admin has chosen."""
    platform_fee_bps: int = 0
    """The service's share of invoices and sales, in basis points, of organisations that have none of their own."""
    spare_accounts: tuple[int, ...] = ()
    """Accounts of a simulated network that newcomers are given, as somebody who runs a real one would open them."""
    ocs_token: str = field(default="", repr=False)
    """The service's own reseller token, for organisations in managed mode; empty: there is none."""


class CallbackPosts(Protocol):
    """Posts to addresses that clients have named."""

    async def ask(self, url: str, body: bytes, headers: Mapping[str, str], *, private: bool = False) -> tuple[DeliveryAttempt, bytes]:
        """Posts `body` with `headers` to `url` once, a vetted address only; how that went, and what the receiver answered.

        `private`: the organisation may have receivers in the operator's own network. Waits for the network.
        """
        ...


Ctx: TypeAlias = Context[Deps]
