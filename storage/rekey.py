"""Sealing again with the keyring's first key what an older one sealed, in batches, while the service runs.

A batch is read, sealed outside of any transaction, and written where the value is still the one that was read: what somebody changed
meanwhile is left as it is and looked at once more. Every batch is a commit of its own, so a run that was ended is simply begun again.

eSIMs of orders that are bound to an id of before are sealed again, too: migration 0009 has no keyring, the first start after it has.
Until then a row keeps that id in `esim_binding`, since nothing else opens its eSIM; afterwards the id is nowhere but in its buyer's mail.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import KeyUnknown
from storage.approvals import APPROVAL
from storage.claims import ClaimTable
from storage.engine.sql import Command, Connection, Dialect, Query, all_rows, text_query
from storage.engine.store import Store
from storage.fleet_erasure import FLEET_ERASURE_KEY
from storage.former_tokens import FormerTokenTable
from storage.intents import IntentTable
from storage.mail import MailTable
from storage.oauth_clients import OauthClientTable
from storage.orders import STOREFRONT_ORDER, StorefrontOrderTable
from storage.organisations import OrganisationTable
from storage.schedule_mails import SCHEDULE_MAIL
from storage.sealing import (
    ERASURE_KEY_FIELD,
    KEY_ID,
    OWN_TOKEN_FIELD,
    SERVICE_OWNER,
    Keyring,
    WrongSeal,
    approval_field,
    claim_field,
    client_secret_field,
    esim_field,
    mail_field,
    schedule_mail_field,
    signing_key_field,
    webhook_secret_field,
)
from storage.signing_keys import SigningKeyTable
from storage.webhook_endpoints import WEBHOOK_ENDPOINT

RESEALED_AT_ONCE = 200

RESEAL_ROUNDS = 10  # what changes under ten rounds is left to the next run, which the count at the end asks for

MOST_NAMED = 100  # unopened values that are named; all are counted


class SealedRow(NamedTuple):
    """A sealed value and where it lies; `part` is empty where the id suffices."""

    organisation: str
    part: str
    id: str
    sealed: str


class UnopenedValue(NamedTuple):
    """A value that stays as it is: its row, and the key it would need where the keyring lacks it."""

    row: str
    missing_key: str | None


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """One column of sealed values, and its statements. `key` says which of its columns tells which part of a row's place."""

    name: str
    table: str
    key: Sequence[str]
    bound_to: Callable[[SealedRow], str]
    older: Query[SealedRow]
    write: Command
    count_older: Query[int]
    count_of_key: Query[int]
    count_all: Query[int]

    def place(self, row: SealedRow) -> dict[str, str]:
        """The row's primary key."""
        return {name: value for name, value in row._asdict().items() if name in self.key}


@dataclass(slots=True)
class ResealResult:
    """What came of one column."""

    resealed: int = 0
    unopened: int = 0
    named: list[UnopenedValue] = field(default_factory=list[UnopenedValue])


def sealed_column(
    source: sa.Table,
    sealed: str,
    bound_to: Callable[[SealedRow], str],
    *,
    key: Mapping[str, str],
    organisation: str | None = "organisation",
) -> SealedColumn:
    """The statements of a column; rows are walked in the order of their primary key: `key` names its columns, by the row's parts.

    `organisation` is the column with the owner; None: the service itself is.
    """
    value, columns = source.c[sealed], source.c
    head = sa.func.substr(value, 1, sa.bindparam("length", type_=sa.Integer))
    by_key = sa.bindparam("by_key", type_=sa.Text)

    def find_older(_: Dialect) -> sa.Executable:
        found = sa.select(
            (sa.literal(SERVICE_OWNER) if organisation is None else columns[organisation]).label("organisation"),
            (columns[key["part"]] if "part" in key else sa.literal("")).label("part"),
            columns[key["id"]].label("id"),
            value.label("sealed"),
        )
        order = [columns[name] for name in key.values()]
        beyond = sa.tuple_(*order) > sa.tuple_(*(sa.bindparam(f"after_{part}", type_=sa.Text) for part in key))
        return found.where(head != by_key, beyond).order_by(*order).limit(RESEALED_AT_ONCE)

    def write(_: Dialect) -> sa.Update:
        same = (columns[name] == sa.bindparam(f"at_{part}") for part, name in key.items())
        return sa.update(source).where(*same, value == sa.bindparam("seen")).values({sealed: sa.bindparam("again")})

    def count(condition: Callable[[], sa.ColumnElement[bool]]) -> Query[int]:
        return Query(int, lambda _: sa.select(sa.func.count().label("held")).select_from(source).where(condition()))

    return SealedColumn(
        name=f"{source.name}.{sealed}",
        table=source.name,
        key=tuple(key),
        bound_to=bound_to,
        older=Query(SealedRow, find_older),
        write=Command(write),
        count_older=count(lambda: head != by_key),
        count_of_key=count(lambda: head == by_key),
        count_all=count(lambda: value.is_not(None)),
    )


PLACE_BY_ID = {"id": "id"}

PLACE_BY_CLAIM = {"organisation": "organisation", "part": "operation", "id": "key"}

# The current secret comes before the previous one: a rotation moves it there, and so never behind the walk. An undo moves a former own
# token the other way: the count at the end finds it, and another run seals it again.
SEALED_COLUMNS = (
    sealed_column(OrganisationTable.table, "own_token", lambda row: OWN_TOKEN_FIELD, key=PLACE_BY_ID, organisation="id"),
    sealed_column(FormerTokenTable.table, "sealed", lambda row: OWN_TOKEN_FIELD, key={"id": "organisation"}),
    sealed_column(FLEET_ERASURE_KEY, "sealed", lambda row: ERASURE_KEY_FIELD, key={"id": "organisation"}),
    sealed_column(WEBHOOK_ENDPOINT, "secret", lambda row: webhook_secret_field(row.id), key=PLACE_BY_ID),
    sealed_column(WEBHOOK_ENDPOINT, "previous_secret", lambda row: webhook_secret_field(row.id), key=PLACE_BY_ID),
    sealed_column(IntentTable.table, "esim", lambda row: esim_field(row.id), key=PLACE_BY_ID),
    sealed_column(StorefrontOrderTable.table, "esim", lambda row: esim_field(row.id), key=PLACE_BY_ID),
    sealed_column(SigningKeyTable.table, "private", lambda row: signing_key_field(row.id), key={"id": "kid"}, organisation=None),
    sealed_column(OauthClientTable.table, "secret", lambda row: client_secret_field(row.id), key=PLACE_BY_ID, organisation=None),
    # Mails that wait live for minutes, but one that could not be opened any more would be a code that somebody waits for.
    sealed_column(MailTable.table, "sealed", lambda row: mail_field(row.id), key=PLACE_BY_ID, organisation=None),
    sealed_column(SCHEDULE_MAIL, "share", lambda row: schedule_mail_field(row.id), key={"id": "schedule"}),
    sealed_column(APPROVAL, "request", lambda row: approval_field(row.id), key=PLACE_BY_ID),
    sealed_column(APPROVAL, "outcome", lambda row: approval_field(row.id), key=PLACE_BY_ID),
    sealed_column(ClaimTable.table, "body", lambda row: claim_field(row.part, row.id), key=PLACE_BY_CLAIM),
)


async def reseal(store: Store, keyring: Keyring, column: SealedColumn) -> ResealResult:
    """Seal a column's older values again; what changes meanwhile is visited again, and what cannot be opened is left and named."""
    done = ResealResult()
    for _ in range(RESEAL_ROUNDS):
        if not await reseal_once(store, keyring, column, done):
            break
    return done


async def reseal_once(store: Store, keyring: Keyring, column: SealedColumn, done: ResealResult) -> bool:
    """Once through the column; whether something changed under it."""
    done.unopened, done.named = 0, []
    last, changed = SealedRow("", "", "", ""), False
    while rows := await store.read(read_older, column=column, key_id=keyring.key_ids[0], after=last):
        bound = [(row, column.bound_to(row)) for row in rows]
        tried = [(row, sealed_again(keyring, row.sealed, row.organisation, former=binding, binding=binding)) for row, binding in bound]
        again = [(row, sealed) for row, sealed in tried if sealed is not None]
        written = await store.write(write_again, column=column, rows=again)
        done.resealed += written
        changed = changed or written < len(again)
        note_unopened(done, keyring, column, [row for row, sealed in tried if sealed is None])
        last = rows[-1]
    return changed


def sealed_again(keyring: Keyring, sealed: str, organisation: str, *, former: str, binding: str) -> str | None:
    """The text of a value that is bound to the field `former`, under the first key and bound to `binding`; None when it does not open."""
    try:
        text = keyring.open(sealed, org_id=organisation, field=former)
    except (KeyUnknown, ValueError, WrongSeal):
        return None
    return keyring.seal(text, org_id=organisation, field=binding)


def note_unopened(done: ResealResult, keyring: Keyring, column: SealedColumn, rows: Sequence[SealedRow]) -> None:
    """Count what stays as it is, and name the first; never by its content."""
    done.unopened += len(rows)
    for row in rows[: MOST_NAMED - len(done.named)]:
        key_id, *rest = row.sealed.split(".")
        missing = len(rest) == 2 and KEY_ID.fullmatch(key_id) is not None and key_id not in keyring.key_ids
        done.named.append(UnopenedValue(f"{column.table} {' '.join(column.place(row).values())}", key_id if missing else None))


def read_older(connection: Connection, *, column: SealedColumn, key_id: str, after: SealedRow) -> list[SealedRow]:
    """The next values that another key sealed."""
    places = {f"after_{part}": value for part, value in column.place(after).items()}
    return connection.all(column.older, **key_binds(key_id), **places)


def write_again(connection: Connection, *, column: SealedColumn, rows: Sequence[tuple[SealedRow, str]]) -> int:
    """Replace the values that are still the ones that were read; how many were."""
    places = ({f"at_{part}": value for part, value in column.place(row).items()} for row, _ in rows)
    return connection.run_many(
        column.write, [{"seen": row.sealed, "again": again, **place} for (row, again), place in zip(rows, places, strict=True)]
    )


def count_older(connection: Connection, *, key_id: str) -> int:
    """How many values of all columns another key than this one sealed."""
    return sum(connection.first(column.count_older, **key_binds(key_id)) or 0 for column in SEALED_COLUMNS)


def count_of_key(connection: Connection, *, key_id: str) -> int:
    """How many values of all columns a key sealed."""
    return sum(connection.first(column.count_of_key, **key_binds(key_id)) or 0 for column in SEALED_COLUMNS)


def count_sealed(connection: Connection) -> int:
    return sum(connection.first(column.count_all) or 0 for column in SEALED_COLUMNS)


def key_binds(key_id: str) -> dict[str, str | int]:
    """The beginning that a key's values share."""
    return {"by_key": f"{key_id}.", "length": len(key_id) + 1}


REBOUND_AT_ONCE = 200


class BoundEsim(NamedTuple):
    """A sealed eSIM, and the id that it is bound to."""

    id: str
    organisation: str
    esim: str
    esim_binding: str


async def rebind_esims(store: Store, keyring: Keyring) -> int:
    """Bind every eSIM to its order's number; how many were left, because no key of the keyring opens them. Several at once are safe."""
    left, after = 0, ""
    while rows := await store.read(bound_esims, after=after):
        again = [(row, sealed) for row in rows if (sealed := rebound(row, keyring)) is not None]
        left, after = left + len(rows) - len(again), rows[-1].esim_binding
        if again:
            await store.write(write_rebound, rows=again)
    return left


def rebound(row: BoundEsim, keyring: Keyring) -> str | None:
    """The same eSIM, bound to the number; None when it does not open."""
    return sealed_again(keyring, row.esim, row.organisation, former=esim_field(row.esim_binding), binding=esim_field(row.id))


@all_rows(BoundEsim)
def bound_esims(*, after: str) -> sa.Executable:
    return (
        sa.select(STOREFRONT_ORDER.c.id, STOREFRONT_ORDER.c.organisation, STOREFRONT_ORDER.c.esim, STOREFRONT_ORDER.c.esim_binding)
        .where(STOREFRONT_ORDER.c.esim_binding.is_not(None), STOREFRONT_ORDER.c.esim_binding > sa.bindparam("after", type_=sa.Text))
        .order_by(STOREFRONT_ORDER.c.esim_binding)
        .limit(REBOUND_AT_ONCE)
    )


WRITE_REBOUND = Command(
    sa.update(STOREFRONT_ORDER)
    .where(
        STOREFRONT_ORDER.c.id == sa.bindparam("named"),
        STOREFRONT_ORDER.c.esim == sa.bindparam("former"),
        STOREFRONT_ORDER.c.esim_binding.is_not(None),
    )
    .values(esim=sa.bindparam("again"), esim_binding=None)
)


def write_rebound(connection: Connection, *, rows: list[tuple[BoundEsim, str]]) -> int:
    """Replaces those that are still as they were read; how many were."""
    return connection.run_many(WRITE_REBOUND, [{"named": row.id, "former": row.esim, "again": sealed} for row, sealed in rows])


KEY_ID_LENGTH = 32

NEAREST_ROWS = 100  # rows looked at for one that is sealed: an intent that waits for its plan, and a call under way, hold nothing yet


def outermost_queries(table: str, order: str, sealed: str) -> tuple[Query[str], Query[str]]:
    """The newest sealed value of a table and the oldest, found by an index: an older key is missed by the oldest."""
    return one_end(table, order, sealed, "DESC"), one_end(table, order, sealed, "ASC")


def one_end(table: str, order: str, sealed: str, way: str) -> Query[str]:
    """The first sealed value from one end of a table. As text: every start asks, and builds the query for it."""
    rows = f"SELECT {order} AS place, substr({sealed}, 1, {KEY_ID_LENGTH + 1}) AS head FROM {table} WHERE {order} IS NOT NULL"
    nearest = f"{rows} ORDER BY {order} {way} LIMIT {NEAREST_ROWS}"
    return text_query(str, f"SELECT head FROM ({nearest}) AS nearest WHERE head IS NOT NULL ORDER BY place {way} LIMIT 1", "head")


# Few organisations have a token of their own, and any of them may be the one: the whole table, which is short, is looked through.
OUTERMOST_QUERIES = (
    text_query(
        str,
        f"SELECT substr(own_token, 1, {KEY_ID_LENGTH + 1}) AS head FROM organisation WHERE own_token IS NOT NULL ORDER BY id DESC LIMIT 1",
        "head",
    ),
    *outermost_queries("webhook_endpoint", "id", "secret"),
    *outermost_queries("intent", "id", "esim"),
    *outermost_queries("claim", "expires_at", "body"),
    *outermost_queries("signing_key", "number", "private"),
    *outermost_queries("oauth_client", "created", "secret"),
)


def outermost_key_ids(connection: Connection) -> frozenset[str]:
    """The ids of the keys that sealed the newest and the oldest rows; what has not the form of a sealed value says nothing."""
    heads = [row.partition(".") for query in OUTERMOST_QUERIES if (row := connection.first(query)) is not None]
    return frozenset(key_id for key_id, dot, _ in heads if dot and KEY_ID.fullmatch(key_id))
