"""What an older key sealed is sealed again with the first one, whatever else happens to it meanwhile."""

import base64
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Concatenate, NamedTuple, ParamSpec, TypeVar

import pytest
import sqlalchemy as sa

from registry.clock import SystemClock
from registry.errors import StoreUnavailable
from registry.ids import SystemIds
from storage.approvals import ApprovalRow, end_approval, find_approval, insert_approval
from storage.claims import find_claim, take_claim
from storage.engine.sql import Command, Connection, Query
from storage.engine.store import Store
from storage.fleet_erasure import KEEP_ERASURE_KEY, erasure_key
from storage.former_tokens import find_former_token, keep_former_token
from storage.intents import IntentRow, find_intent, insert_intent
from storage.orders import STOREFRONT_ORDER, NewOrder, find_order, insert_order
from storage.organisations import create_organisation
from storage.rekey import (
    MOST_NAMED,
    RESEALED_AT_ONCE,
    SEALED_COLUMNS,
    ResealResult,
    UnopenedValue,
    count_of_key,
    count_older,
    outermost_key_ids,
    reseal,
)
from storage.schedule_mails import ScheduleMail, find_schedule_mail, insert_schedule_mail
from storage.sealing import (
    ERASURE_KEY_FIELD,
    OWN_TOKEN_FIELD,
    Keyring,
    approval_field,
    claim_field,
    esim_field,
    schedule_mail_field,
    webhook_secret_field,
)
from storage.upstream_connections import find_upstream, set_connection
from storage.webhook_endpoints import WebhookEndpointTable, insert_endpoint, rotate_endpoint_secret
from tests.wrapped_store import WrappedStore

P = ParamSpec("P")
T = TypeVar("T")
ORG, NOW = "org_a", 1_800_000_000
ENDPOINT = WebhookEndpointTable.table
IDS = SystemIds(SystemClock())


class Secrets(NamedTuple):
    secret: str
    previous_secret: str | None


GIVE = Command(sa.update(STOREFRONT_ORDER).where(STOREFRONT_ORDER.c.id == sa.bindparam("order")).values(esim=sa.bindparam("sealed")))
READ_SECRETS = Query(Secrets, sa.select(ENDPOINT.c.secret, ENDPOINT.c.previous_secret).where(ENDPOINT.c.id == sa.bindparam("endpoint")))


def keyring(*names: str) -> Keyring:
    numbers = count(1)
    keys = (f"{name}:{base64.b64encode(name.encode().ljust(32, b'.')).decode()}" for name in names)
    return Keyring(",".join(keys), lambda length: next(numbers).to_bytes(length, "big"))


OLD, BOTH, NEW = keyring("old"), keyring("new", "old"), keyring("new")


class Between(WrappedStore):
    """A store beside which somebody else does something: once, after the first read."""

    def __init__(self, store: Store, act: Callable[[], Awaitable[object]]) -> None:
        super().__init__(store)
        self.act, self.done = act, False

    async def read(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        found = await self.store.read(fn, *args, **kwargs)
        if not self.done:
            self.done = True
            await self.act()
        return found


class Dying(Between):
    """A store that is gone after a number of writes."""

    writes = 1

    async def write(self, fn: Callable[Concatenate[Connection, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self.writes == 0:
            raise StoreUnavailable("gone")
        self.writes -= 1
        return await self.store.write(fn, *args, **kwargs)


def fill_claims(connection: Connection, keys: int, ring: Keyring) -> None:
    for number in range(keys):
        operation, key = f"op_{number % 2}", f"key {number:04}"
        sealed = ring.seal(f"answer {number}", org_id=ORG, field=claim_field(operation, key))
        take_claim(
            connection,
            organisation=ORG,
            operation=operation,
            key=key,
            fingerprint=b"f",
            owner="rpl",
            lease="req",
            now=NOW,
            expires_at=None,
            state="done",
            status=200,
            body=sealed,
        )


def fill(connection: Connection, ring: Keyring) -> None:
    """One of everything that is sealed, and rows that hold nothing."""
    for organisation in (ORG, "org_b"):
        create_organisation(connection, id=organisation, name="A", tier="pro", now=NOW)
    token = ring.seal("token", org_id=ORG, field=OWN_TOKEN_FIELD)
    set_connection(connection, organisation=ORG, mode="own", account_id=None, own_token=token)
    former = ring.seal("former token", org_id=ORG, field=OWN_TOKEN_FIELD)
    keep_former_token(connection, organisation=ORG, sealed=former, now=NOW)
    connection.run(KEEP_ERASURE_KEY, organisation=ORG, sealed=ring.seal("erasures", org_id=ORG, field=ERASURE_KEY_FIELD))
    for endpoint in ("we_1", "we_2"):
        secrets = [ring.seal(f"{endpoint} {which}", org_id=ORG, field=webhook_secret_field(endpoint)) for which in ("first", "second")]
        insert_endpoint(connection, id=endpoint, organisation=ORG, url="https://h.example/", secret=secrets[0], now=NOW)
        if endpoint == "we_1":
            rotate_endpoint_secret(connection, endpoint=endpoint, organisation=ORG, sealed=secrets[1], now=NOW)
    for intent, esim in (("cni_1", ring.seal("esim", org_id=ORG, field=esim_field("cni_1"))), ("cni_2", None)):
        row = IntentRow(intent, ORG, "succeeded", 0, None, None, "{}", f"8999{intent}", esim, None, NOW)
        insert_intent(connection, row=row, event=None, ids=IDS)
    order = NewOrder("ord_1", None, ORG, "sf_1", "sfp_1", "{}", 1, None, 990, "EUR", "en", "acct_1", NOW)
    insert_order(connection, order=order)
    connection.run(GIVE, order="ord_1", sealed=ring.seal("order", org_id=ORG, field=esim_field("ord_1")))
    fill_claims(connection, 3, ring)
    share = ring.seal("share", org_id=ORG, field=schedule_mail_field("sch_1"))
    insert_schedule_mail(connection, mail=ScheduleMail("sch_1", ORG, "usr_1", "link", share))
    request, outcome = (ring.seal(text, org_id=ORG, field=approval_field("apr_1")) for text in ("request", "outcome"))
    row = ApprovalRow(
        *("apr_1", ORG, "usr_1", "key_1", "op_1", "k", b"f", b"d", request, "waiting", NOW, NOW + 1, None, None, "", None, None)
    )
    insert_approval(connection, row=row, now=NOW)
    end_approval(connection, approval="apr_1", final="void", code=401, sealed=outcome)


async def rekey(store: Store, ring: Keyring = BOTH) -> dict[str, ResealResult]:
    return {column.name: await reseal(store, ring, column) for column in SEALED_COLUMNS}


async def opened(store: Store, ring: Keyring) -> list[str]:
    connection = await store.read(find_upstream, organisation=ORG)
    intent = await store.read(find_intent, intent="cni_1", organisation=ORG)
    claims = [
        await store.read(find_claim, organisation=ORG, operation=f"op_{number % 2}", key=f"key {number:04}", now=NOW) for number in range(3)
    ]
    secrets = [(id, await store.read(Connection.first, READ_SECRETS, endpoint=id)) for id in ("we_1", "we_2")]
    former = await store.read(find_former_token, organisation=ORG, now=NOW)
    sealed = [(connection and connection.own_token, OWN_TOKEN_FIELD), (former and former.sealed, OWN_TOKEN_FIELD)]
    erasures = await store.read(erasure_key, organisation=ORG)
    sealed += [(erasures and erasures.sealed, ERASURE_KEY_FIELD), (intent and intent.esim, esim_field("cni_1"))]
    order = await store.read(find_order, order="ord_1")
    sealed.append((order and order.esim, esim_field("ord_1")))
    mail = await store.read(find_schedule_mail, schedule="sch_1")
    sealed.append((mail and mail.share, schedule_mail_field("sch_1")))
    approval = await store.read(find_approval, approval="apr_1")
    sealed += [(approval and text, approval_field("apr_1")) for text in (approval.request, approval.outcome)] if approval else []
    sealed += [(row and row.body, claim_field(f"op_{number % 2}", f"key {number:04}")) for number, row in enumerate(claims)]
    sealed += [(each, webhook_secret_field(id)) for id, row in secrets for each in row or ()]
    return [ring.open(text, org_id=ORG, field=field) for text, field in sealed if text]


ALL = [
    "token",
    "former token",
    "erasures",
    "esim",
    "order",
    "share",
    "request",
    "outcome",
    "answer 0",
    "answer 1",
    "answer 2",
    "we_1 second",
    "we_1 first",
    "we_2 first",
]


async def test_everything_opens_with_the_new_key_alone_and_a_second_run_finds_nothing_to_do(store: Store) -> None:
    await store.write(fill, OLD)
    assert await opened(store, OLD) == ALL
    assert (await store.read(count_of_key, key_id="old"), await store.read(count_older, key_id="new")) == (14, 14)
    done = await rekey(store)
    assert {name: each.resealed for name, each in done.items()} == {
        "organisation.own_token": 1,
        "former_token.sealed": 1,
        "fleet_erasure_key.sealed": 1,
        "schedule_mail.share": 1,
        "approval.request": 1,
        "approval.outcome": 1,
        "webhook_endpoint.secret": 2,
        "webhook_endpoint.previous_secret": 1,
        "intent.esim": 1,
        "storefront_order.esim": 1,
        "signing_key.private": 0,
        "oauth_client.secret": 0,
        "mail.sealed": 0,
        "claim.body": 3,
    }
    assert await opened(store, NEW) == ALL
    assert (await store.read(count_of_key, key_id="old"), await store.read(count_older, key_id="new")) == (0, 0)
    assert await rekey(store) == {column.name: ResealResult() for column in SEALED_COLUMNS}


async def test_every_batch_counts_when_the_run_ends_in_the_middle(store: Store) -> None:
    await store.write(fill_claims, 2 * RESEALED_AT_ONCE + 50, OLD)
    claims = SEALED_COLUMNS[-1]
    with pytest.raises(StoreUnavailable):
        await reseal(Dying(store, nothing), BOTH, claims)
    assert await store.read(count_of_key, key_id="new") == RESEALED_AT_ONCE
    assert await reseal(store, BOTH, claims) == ResealResult(RESEALED_AT_ONCE + 50)
    assert await store.read(count_older, key_id="new") == 0


async def nothing() -> None:
    """Nobody else is there."""


@pytest.mark.cases
@pytest.mark.parametrize("column", [1, 2], ids=["secret", "previous_secret"])
async def test_a_secret_rotated_meanwhile_is_kept_and_both_open_afterwards(store: Store, column: int) -> None:
    await store.write(fill, OLD)

    async def rotate() -> None:
        sealed = BOTH.seal("we_1 third", org_id=ORG, field=webhook_secret_field("we_1"))
        await store.write(rotate_endpoint_secret, endpoint="we_1", organisation=ORG, sealed=sealed, now=NOW)

    for place, each in enumerate(SEALED_COLUMNS):
        await reseal(Between(store, rotate) if place == column else store, BOTH, each)
    assert (await opened(store, NEW))[-3:] == ["we_1 third", "we_1 second", "we_2 first"]
    assert await store.read(count_older, key_id="new") == 0


async def test_a_value_that_somebody_else_seals_with_the_old_key_meanwhile_is_visited_again(store: Store) -> None:
    await store.write(fill, OLD)

    async def connect_again() -> None:
        token = OLD.seal("another", org_id=ORG, field=OWN_TOKEN_FIELD)
        await store.write(set_connection, organisation=ORG, mode="own", account_id=None, own_token=token)

    assert await reseal(Between(store, connect_again), BOTH, SEALED_COLUMNS[0]) == ResealResult(1)
    row = await store.read(find_upstream, organisation=ORG)
    assert row is not None and row.own_token is not None
    assert NEW.open(row.own_token, org_id=ORG, field=OWN_TOKEN_FIELD) == "another"


async def test_what_cannot_be_opened_is_left_counted_and_named_without_its_content(store: Store) -> None:
    await store.write(fill, OLD)
    moved = OLD.seal("token of another", org_id="org_b", field=OWN_TOKEN_FIELD)
    await store.write(set_connection, organisation=ORG, mode="own", account_id=None, own_token=moved)
    done = await rekey(store)
    assert done["organisation.own_token"] == ResealResult(0, 1, [UnopenedValue("organisation org_a", None)])
    assert (await store.read(count_of_key, key_id="old"), await store.read(count_older, key_id="new")) == (1, 1)
    done = await rekey(store, keyring("newest", "other"))
    assert done["organisation.own_token"].named == [UnopenedValue("organisation org_a", "old")]
    assert done["claim.body"].named[0] == UnopenedValue("claim org_a op_0 key 0000", "new")
    assert sum(each.unopened for each in done.values()) == len(ALL) - 1  # the former token went with the new connection
    await store.write(set_connection, organisation=ORG, mode="own", account_id=None, own_token="plain secret")
    assert (await rekey(store))["organisation.own_token"].named == [UnopenedValue("organisation org_a", None)]


@pytest.mark.long
async def test_of_many_that_cannot_be_opened_all_are_counted_and_the_first_are_named(store: Store) -> None:
    await store.write(fill_claims, RESEALED_AT_ONCE + 50, OLD)
    done = await reseal(store, NEW, SEALED_COLUMNS[-1])
    assert (done.resealed, done.unopened, len(done.named)) == (0, RESEALED_AT_ONCE + 50, MOST_NAMED)


async def test_a_start_looks_at_an_own_token_too(store: Store) -> None:
    await store.write(fill_claims, 0, OLD)
    await store.write(create_organisation, id=ORG, name="A", tier="pro", now=NOW)
    assert await store.read(outermost_key_ids) == frozenset()
    token = OLD.seal("token", org_id=ORG, field=OWN_TOKEN_FIELD)
    await store.write(set_connection, organisation=ORG, mode="own", account_id=None, own_token=token)
    assert await store.read(outermost_key_ids) == {"old"}
