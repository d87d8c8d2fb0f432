"""Who uses the simulated service: two organisations with a key each and endpoints, prepared once and copied into every episode."""

from dataclasses import dataclass
from random import Random

from clients.webhooks.signature import WEBHOOK_SECRET_BYTES, new_webhook_secret
from storage.engine.sql import Connection
from storage.products import ProductRow, insert_product
from storage.sealing import Keyring, new_key_setting, webhook_secret_field
from storage.webhook_endpoints import insert_endpoint
from tests.harness.tenant_stage import found_tenant
from tests.simulation.agents import LimitedAgent, hire_agent
from tests.simulation.clock import SimIds
from tests.simulation.provider import Template
from tests.simulation.shops import SimulatedShop, open_simulated_shop
from tests.simulation.store import SimDisk, empty_image
from tests.world import NOON

TEMPLATES = (
    Template(55010, "Nordic 1GB 30d", 30),
    Template(55011, "Nordic 3GB 30d", 30),
    Template(55012, "Nordic 5GB 30d", 30),
    Template(55013, "Nordic 9GB 30d", 30),
    Template(55099, "Of others", 30),
)
SLUG = "nordic-3gb-30d"
SLUG_TEMPLATE, PRODUCT_TEMPLATES, OTHERS_TEMPLATE = 55011, (55012, 55013), 55099
INVENTORY_TEMPLATES = (55010, 55010, 55011)


class Still:
    def now(self) -> float:
        return NOON - 86_400

    def monotonic(self) -> float:
        return 0.0


@dataclass(frozen=True, slots=True)
class SimulatedTenant:
    """An organisation, the secret of its API key, its account, its endpoints by id, and its live plans with their templates."""

    id: str
    secret: str
    account: int
    endpoints: dict[str, str]
    plans: dict[str, int]


@dataclass(frozen=True, slots=True)
class Tenants:
    """The prepared database, its keyring and who is in it."""

    disk: SimDisk
    keyring: str
    all: tuple[SimulatedTenant, ...]
    shops: dict[str, SimulatedShop]
    """By organisation."""
    agents: dict[str, LimitedAgent]
    """By organisation."""

    @property
    def urls(self) -> dict[str, str]:
        return {id: url for tenant in self.all for id, url in tenant.endpoints.items()}


ACCOUNTS = (8101, 8102)
ENDPOINTS = (2, 1)


def prepare(*, shared_account: bool) -> Tenants:
    """The world before anything happens; with `shared_account` both organisations draw from one account."""
    ids = SimIds(Still(), Random(7))
    setting = new_key_setting(ids.bytes)
    keyring = Keyring(setting, ids.bytes)
    disk = SimDisk(empty_image())
    accounts = (ACCOUNTS[0], ACCOUNTS[0]) if shared_account else ACCOUNTS
    tenants = tuple(
        disk.transact(settle_in, ids=ids, keyring=keyring, account=account, endpoints=count)
        for account, count in zip(accounts, ENDPOINTS, strict=True)
    )
    now = Still().now()
    shops = {each.id: disk.transact(open_simulated_shop, ids=ids, organisation=each.id, account=each.account, now=now) for each in tenants}
    agents = {each.id: disk.transact(hire_agent, ids=ids, organisation=each.id, now=now) for each in tenants}
    return Tenants(disk, setting, tenants, shops, agents)


def settle_in(connection: Connection, *, ids: SimIds, keyring: Keyring, account: int, endpoints: int) -> SimulatedTenant:
    """One organisation with all it needs."""
    now = Still().now()
    organisation, secret = found_tenant(connection, ids=ids, account=account, now=now)
    urls: dict[str, str] = {}
    for number in range(endpoints):
        id = ids.new("we_")
        urls[id] = f"https://hooks.sim.invalid/{organisation}/{number}"
        sealed = keyring.seal(new_webhook_secret(ids.bytes(WEBHOOK_SECRET_BYTES)), org_id=organisation, field=webhook_secret_field(id))
        insert_endpoint(connection, id=id, organisation=organisation, url=urls[id], secret=sealed, now=now)
    plans = {SLUG: SLUG_TEMPLATE}
    for number, template in enumerate(PRODUCT_TEMPLATES):
        plans[id := ids.new("cnp_")] = template
        pinned = account if number else None
        row = ProductRow(id, organisation, "Ours", 1000, 30, '["NO"]', 500, "EUR", template, pinned, int(now))
        insert_product(connection, row=row)
    return SimulatedTenant(organisation, secret, account, urls, plans)
