"""Who uses the service beside the stage's three tenants: a crowd that makes test eSIMs and sends call records, and a shop."""

from dataclasses import dataclass, field

from registry.clock import SystemClock
from registry.ids import Ids, SystemIds
from storage.connect_accounts import attach_connect_account
from storage.engine.sql import Connection
from storage.engine.store import Store
from tests.endurance.receivers import MANNERS, CountingReceiver, CountingReceivers, Manner
from tests.harness.tenant_stage import found_tenant, listen
from tests.simulation.shops import open_simulated_shop

RUDE_ACCOUNT, SHOP_ACCOUNT = 8102, 8101
SHOP_TEMPLATE = 55010
CROWD: tuple[tuple[Manner, ...], ...] = (("prompt",), ("prompt", "prompt"), (), MANNERS)
"""The endpoints of each of the crowd; the last one, with all manners, calls seldom, since a slow receiver takes one post in a second."""


@dataclass(slots=True)
class Member:
    """An organisation of the crowd, and what it remembers."""

    id: str
    secret: str
    endpoints: dict[str, CountingReceiver] = field(default_factory=dict[str, CountingReceiver])
    seldom: bool = False
    intents: list[str] = field(default_factory=list[str])
    answers: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """The answers of the newest idempotency keys."""
    keys: int = 0
    made: set[str] = field(default_factory=set[str])
    """The keys whose eSIM was made."""
    batches: int = 0
    records: set[int] = field(default_factory=set[int])
    """The numbers of the call records that were taken."""
    periods: list[str] = field(default_factory=list[str])
    lines: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class ShopOwner:
    """The organisation with a shop, and the shop's name."""

    id: str
    slug: str
    payee: str


async def gather_crowd(store: Store, receivers: CountingReceivers) -> list[Member]:
    """All of them, on an empty database."""
    return [await store.write(join, ids=SystemIds(SystemClock()), manners=manners, receivers=receivers) for manners in CROWD]


def join(connection: Connection, *, ids: Ids, manners: tuple[Manner, ...], receivers: CountingReceivers) -> Member:
    organisation, secret = found_tenant(connection, ids=ids, account=RUDE_ACCOUNT)
    member = Member(organisation, secret, seldom=len(manners) == len(MANNERS))
    for manner in manners:
        receiver, url = receivers.add(manner)
        endpoint, receiver.secret = listen(connection, ids=ids, organisation=organisation, url=url)
        member.endpoints[endpoint] = receiver
    return member


def open_selling_shop(connection: Connection, *, ids: Ids, payee: str) -> ShopOwner:
    """A shop whose payments go to an account that the processor has."""
    now = SystemClock().now()
    organisation, _ = found_tenant(connection, ids=ids, account=SHOP_ACCOUNT)
    attach_connect_account(connection, organisation=organisation, account=payee, kind="standard", status="active", as_of=now, now=now)
    shop = open_simulated_shop(connection, ids=ids, organisation=organisation, account=SHOP_ACCOUNT, now=now)
    return ShopOwner(organisation, shop.storefront.slug, payee)
