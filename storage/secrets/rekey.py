"""Sealing again with the keyring's first key what an older one sealed, in batches, while the service runs.

A batch is read, sealed outside of any transaction, and written where the value is still the one that was read: what somebody changed
meanwhile is left as it is and looked at once more. Every batch is a commit of its own, so a run that was ended is simply begun again.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import sqlalchemy as sa

from registry.errors import KeyUnknown
from storage.connection import Connection
from storage.schema import (
    ClaimTable,
    FormerTokenTable,
    IntentTable,
    MailTable,
    OauthClientTable,
    OrganisationTable,
    SigningKeyTable,
    WebhookEndpointTable,
)
from storage.secrets.sealed_fields import (
    OWN_TOKEN_FIELD,
    claim_field,
    client_secret_field,
    esim_field,
    mail_field,
    signing_key_field,
    webhook_secret_field,
)
from storage.secrets.sealing import KEY_ID, Keyring
from storage.shop.shop_tables import StorefrontOrderTable
from storage.statement import Command, Query, table
from storage.store import Store

BATCH = 200
ROUNDS = 10  # what changes under ten rounds is left to the next run, which the count at the end asks for
SERVICE = "service"  # stands in the place of an organisation where a secret is nobody's but the service's
NAMED = 100  # unopened values that are named; all are counted


class SealedRow(NamedTuple):
    """A sealed value and where it lies; `part` is empty where the id suffices."""

    organisation: str
    part: str
    id: str
    sealed: str


class Count(NamedTuple):
    """How many."""

    held: int


class Unopened(NamedTuple):
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
    count_older: Query[Count]
    count_of_key: Query[Count]
    count_all: Query[Count]

    def place(self, row: SealedRow) -> dict[str, str]:
        """The row's primary key."""
        return {name: value for name, value in row._asdict().items() if name in self.key}


@dataclass(slots=True)
class Resealed:
    """What came of one column."""

    resealed: int = 0
    unopened: int = 0
    named: list[Unopened] = field(default_factory=list[Unopened])


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
    found = sa.select(
        (sa.literal(SERVICE) if organisation is None else columns[organisation]).label("organisation"),
        (columns[key["part"]] if "part" in key else sa.literal("")).label("part"),
        columns[key["id"]].label("id"),
        value.label("sealed"),
    )
    order = [columns[name] for name in key.values()]
    beyond = sa.tuple_(*order) > sa.tuple_(*(sa.bindparam(f"after_{part}", type_=sa.Text) for part in key))
    same = (columns[name] == sa.bindparam(f"at_{part}") for part, name in key.items())
    head = sa.func.substr(value, 1, sa.bindparam("length", type_=sa.Integer))
    by_key = sa.bindparam("by_key", type_=sa.Text)
    count = sa.select(sa.func.count().label("held")).select_from(source)
    return SealedColumn(
        name=f"{source.name}.{sealed}",
        table=source.name,
        key=tuple(key),
        bound_to=bound_to,
        older=Query(SealedRow, found.where(head != by_key, beyond).order_by(*order).limit(BATCH)),
        write=Command(sa.update(source).where(*same, value == sa.bindparam("seen")).values({sealed: sa.bindparam("again")})),
        count_older=Query(Count, count.where(head != by_key)),
        count_of_key=Query(Count, count.where(head == by_key)),
        count_all=Query(Count, count.where(value.is_not(None))),
    )


ENDPOINT = table(WebhookEndpointTable)
BY_ID = {"id": "id"}
BY_CLAIM = {"organisation": "organisation", "part": "operation", "id": "key"}
# The current secret comes before the previous one: a rotation moves it there, and so never behind the walk. An undo moves a former own
# token the other way: the count at the end finds it, and another run seals it again.
COLUMNS = (
    sealed_column(table(OrganisationTable), "own_token", lambda row: OWN_TOKEN_FIELD, key=BY_ID, organisation="id"),
    sealed_column(table(FormerTokenTable), "sealed", lambda row: OWN_TOKEN_FIELD, key={"id": "organisation"}),
    sealed_column(ENDPOINT, "secret", lambda row: webhook_secret_field(row.id), key=BY_ID),
    sealed_column(ENDPOINT, "previous_secret", lambda row: webhook_secret_field(row.id), key=BY_ID),
    sealed_column(table(IntentTable), "esim", lambda row: esim_field(row.id), key=BY_ID),
    sealed_column(table(StorefrontOrderTable), "esim", lambda row: esim_field(row.id), key=BY_ID),
    sealed_column(table(SigningKeyTable), "private", lambda row: signing_key_field(row.id), key={"id": "kid"}, organisation=None),
    sealed_column(table(OauthClientTable), "secret", lambda row: client_secret_field(row.id), key=BY_ID, organisation=None),
    # Mails that wait live for minutes, but one that could not be opened any more would be a code that somebody waits for.
    sealed_column(table(MailTable), "sealed", lambda row: mail_field(row.id), key=BY_ID, organisation=None),
    sealed_column(table(ClaimTable), "body", lambda row: claim_field(row.part, row.id), key=BY_CLAIM),
)


async def reseal(store: Store, keyring: Keyring, column: SealedColumn) -> Resealed:
    """Seal a column's older values again; what changes meanwhile is visited again, and what cannot be opened is left and named."""
    done = Resealed()
    for _ in range(ROUNDS):
        if not await walk(store, keyring, column, done):
            break
    return done


async def walk(store: Store, keyring: Keyring, column: SealedColumn, done: Resealed) -> bool:
    """Once through the column; whether something changed under it."""
    done.unopened, done.named = 0, []
    last, changed = SealedRow("", "", "", ""), False
    while rows := await store.read(read_older, column=column, key_id=keyring.key_ids[0], after=last):
        tried = [(row, sealed_again(keyring, column, row)) for row in rows]
        again = [(row, sealed) for row, sealed in tried if sealed is not None]
        written = await store.write(write_again, column=column, rows=again)
        done.resealed += written
        changed = changed or written < len(again)
        note_unopened(done, keyring, column, [row for row, sealed in tried if sealed is None])
        last = rows[-1]
    return changed


def sealed_again(keyring: Keyring, column: SealedColumn, row: SealedRow) -> str | None:
    """The same text under the first key, bound as before; nothing when it does not open."""
    from cryptography.exceptions import InvalidTag  # slow to import

    binding = column.bound_to(row)
    try:
        text = keyring.open(row.sealed, org_id=row.organisation, field=binding)
    except (KeyUnknown, ValueError, InvalidTag):
        return None
    return keyring.seal(text, org_id=row.organisation, field=binding)


def note_unopened(done: Resealed, keyring: Keyring, column: SealedColumn, rows: Sequence[SealedRow]) -> None:
    """Count what stays as it is, and name the first; never by its content."""
    done.unopened += len(rows)
    for row in rows[: NAMED - len(done.named)]:
        key_id, *rest = row.sealed.split(".")
        missing = len(rest) == 2 and KEY_ID.fullmatch(key_id) is not None and key_id not in keyring.key_ids
        done.named.append(Unopened(f"{column.table} {' '.join(column.place(row).values())}", key_id if missing else None))


def read_older(connection: Connection, *, column: SealedColumn, key_id: str, after: SealedRow) -> list[SealedRow]:
    """The next values that another key sealed."""
    places = {f"after_{part}": value for part, value in column.place(after).items()}
    return connection.all(column.older, **under(key_id), **places)


def write_again(connection: Connection, *, column: SealedColumn, rows: Sequence[tuple[SealedRow, str]]) -> int:
    """Replace the values that are still the ones that were read; how many were."""
    places = ({f"at_{part}": value for part, value in column.place(row).items()} for row, _ in rows)
    return connection.run_many(
        column.write, [{"seen": row.sealed, "again": again, **place} for (row, again), place in zip(rows, places, strict=True)]
    )


def count_older(connection: Connection, *, key_id: str) -> int:
    """How many values of all columns another key than this one sealed."""
    return sum(row.held for column in COLUMNS if (row := connection.first(column.count_older, **under(key_id))) is not None)


def count_of_key(connection: Connection, *, key_id: str) -> int:
    """How many values of all columns a key sealed."""
    return sum(row.held for column in COLUMNS if (row := connection.first(column.count_of_key, **under(key_id))) is not None)


def count_sealed(connection: Connection) -> int:
    """How many sealed values there are in all columns."""
    return sum(row.held for column in COLUMNS if (row := connection.first(column.count_all)) is not None)


def under(key_id: str) -> dict[str, str | int]:
    """The beginning that a key's values share."""
    return {"by_key": f"{key_id}.", "length": len(key_id) + 1}
