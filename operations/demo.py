"""What an empty database gets in demo mode: one enterprise organisation, its admin, one key, and a shop."""

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import orjson

from operations.secret_tokens import new_api_key
from registry.caller import Role, Tier
from registry.clock import Clock
from registry.ids import Ids
from storage.api_keys import insert_key
from storage.connect_accounts import attach_connect_account, detach_connect_account, organisation_of_account
from storage.engine.sql import Connection
from storage.engine.store import Store
from storage.organisations import add_member, count_change, create_organisation, list_organisations
from storage.people import create_person
from storage.storefronts import Storefront, StorefrontPlan, find_published, insert_storefront, put_plan

_DEMO_PERSON = "Demo Admin"
DEMO_EMAIL = "admin@demo.invalid"


class Demo(NamedTuple):
    """The demo organisation, and its key on the one occasion it can be shown."""

    organisation: str
    api_key: str | None
    shop: str | None
    """The slug of its shop, while everybody may see it."""


async def ensure_demo(store: Store, ids: Ids, clock: Clock, *, account: int | None, payee: str | None) -> Demo | None:
    """Seed an empty database; one that has organisations already keeps them.

    `account` is its sub-account upstream, `payee` its account at the payment processor; none where that one is not simulated here.
    """
    found = await store.read(list_organisations)
    if found:
        return Demo(found[0].id, None, await store.read(_demo_shop_slug, organisation=found[0].id))
    key, organisation, person, key_id = new_api_key(ids), ids.new("org_"), ids.new("usr_"), ids.new("key_")
    shop, now = (ids.new("sf_"), *(ids.new("sfp_") for _ in DEMO_PLANS)), clock.now()

    def seed(connection: Connection) -> bool:
        """The rows, unless another process has been faster; the counter's row makes racing starters queue."""
        count_change(connection, name="demo")
        if list_organisations(connection):
            return False
        create_organisation(
            connection,
            id=organisation,
            name=DEMO_NAME,
            tier=Tier.ENTERPRISE,
            now=now,
            mode=None if account is None else "managed",
            account_id=account,
            service_own=True,
            simulated=account is not None,
        )
        create_person(connection, id=person, email=DEMO_EMAIL, name=_DEMO_PERSON, now=now)
        add_member(connection, person=person, organisation=organisation, role=Role.ADMIN, now=now)
        insert_key(
            connection, id=key_id, digest=key.digest, prefix=key.prefix, organisation=organisation, person=person, name="demo", now=now
        )
        seed_demo_shop(connection, organisation=organisation, ids=shop, now=now)
        if payee is not None:
            attach_connect_account(
                connection, organisation=organisation, account=payee, kind="express", status="active", as_of=now, now=now
            )
        return True

    seeded = await store.write(seed)
    return Demo(organisation, key.secret, DEMO_SLUG) if seeded else await ensure_demo(store, ids, clock, account=account, payee=payee)


def _demo_shop_slug(connection: Connection, *, organisation: str) -> str | None:
    """The slug of the demo's shop; its owner may have renamed it, or taken it back."""
    shop = find_published(connection, slug=DEMO_SLUG)
    return DEMO_SLUG if shop is not None and shop.organisation == organisation else None


def detach_demo_payee(connection: Connection, *, payee: str, now: float) -> bool:
    """Detaches the simulated account `payee` once another processor is used; True where an organisation had it. `now`: Unix seconds."""
    if organisation_of_account(connection, account=payee) is None:
        return False
    detach_connect_account(connection, account=payee, as_of=now, now=now)
    return True


DEMO_SLUG = "demo"
DEMO_NAME = "Demo Telecom"
_DEMO_ACCENT = "#0f5f8c"
_DEMO_SUPPORT = "support@demo.invalid"
_DEMO_NORDICS = "DK FI IS NO SE"
_DEMO_EUROPE = "AT BE BG CH CY CZ DE DK EE ES FI FR GB GR HR HU IE IS IT LT LU LV MT NL NO PL PT RO RS SE SI SK TR"
_DEMO_OTHER_COUNTRIES = "AE AR AU BR CA CL CN CO CR DO EG HK ID IL IN JO JP KE KR MA MX MY NG NZ PE PH QA SA SG TH TN TW US VN ZA"


class DemoPlan(NamedTuple):
    """A plan, and the package template that it is drawn on, which counts in MiB and so holds a little more."""

    slug: str
    name: str
    template_id: int
    data_mb: int
    validity_days: int
    countries: str
    price_cents: int
    on_sale: bool = True


DEMO_PLANS = (
    DemoPlan("europe-3gb", "Europe 3 GB", 55015, 3000, 30, _DEMO_EUROPE, 1490),
    DemoPlan("nordics-1gb", "Nordics 1 GB", 55010, 1000, 30, _DEMO_NORDICS, 790),
    DemoPlan("usa-3gb", "USA 3 GB", 55020, 3000, 30, "US", 1990),
    DemoPlan("japan-3gb", "Japan 3 GB", 55023, 3000, 15, "JP", 1790),
    DemoPlan("world-1gb", "World 1 GB", 55028, 1000, 30, f"{_DEMO_EUROPE} {_DEMO_OTHER_COUNTRIES}", 2290),
    DemoPlan("baltics-2gb", "Baltics 2 GB", 55018, 2000, 15, "EE LT LV", 890, on_sale=False),
)


def seed_demo_shop(connection: Connection, *, organisation: str, ids: Sequence[str], now: float) -> None:
    """A published shop with its plans; `ids` are the shop's and, in their order, the plans'."""
    storefront, made = ids[0], int(now)
    shop = Storefront(
        id=storefront,
        organisation=organisation,
        slug=DEMO_SLUG,
        name=DEMO_NAME,
        tagline="Data for your trip, on the phone you have",
        logo=demo_logo(),
        accent=_DEMO_ACCENT,
        support_email=_DEMO_SUPPORT,
        currency="EUR",
        status="published",
        created=made,
        updated=made,
    )
    insert_storefront(connection, row=shop)
    for place, (id, sold) in enumerate(zip(ids[1:], DEMO_PLANS, strict=True)):
        row = StorefrontPlan(
            id=id,
            storefront=storefront,
            slug=sold.slug,
            name=sold.name,
            data_mb=sold.data_mb,
            validity_days=sold.validity_days,
            countries=orjson.dumps(sorted(sold.countries.split())).decode(),
            price_cents=sold.price_cents,
            on_sale=int(sold.on_sale),
            place=place,
            template_id=sold.template_id,
            account_id=None,  # drawn from the account that the organisation is connected to
            product=None,
            price_id=None,
            price_mode=None,
            created=made,
            updated=made,
        )
        put_plan(connection, row=row)


_LOGO_SIZE, _LOGO_BAR, _LOGO_GAP, _LOGO_FOOT = 64, 8, 4, 54
_LOGO_INK, _LOGO_PAPER = b"\x0f\x5f\x8c\xff", b"\xff\xff\xff\xff"
_LOGO_RGBA = (8, 6, 0, 0, 0)


def demo_logo() -> str:
    lines = b"".join(
        b"\0" + b"".join(_LOGO_INK if _is_logo_ink(x, y) else _LOGO_PAPER for x in range(_LOGO_SIZE)) for y in range(_LOGO_SIZE)
    )
    head = struct.pack(">IIBBBBB", _LOGO_SIZE, _LOGO_SIZE, *_LOGO_RGBA)
    png = b"\x89PNG\r\n\x1a\n" + _png_chunk(b"IHDR", head) + _png_chunk(b"IDAT", zlib.compress(lines, 9)) + _png_chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _is_logo_ink(x: int, y: int) -> bool:
    """Each bar is taller than the one before; all stand on one line."""
    bar, across = divmod(x - (_LOGO_SIZE - 4 * _LOGO_BAR - 3 * _LOGO_GAP) // 2, _LOGO_BAR + _LOGO_GAP)
    return 0 <= bar < 4 and across < _LOGO_BAR and _LOGO_FOOT - 11 * (bar + 1) <= y < _LOGO_FOOT


def _png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
