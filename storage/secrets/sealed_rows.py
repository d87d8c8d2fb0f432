"""Which keys sealed what a database holds: asked at every start, so two reads of one row for each column. `reseller doctor` counts all."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Timer
from typing import NamedTuple, TypeVar

import sqlalchemy as sa

from registry.errors import StoreUnavailable
from storage.address import is_sqlite, sqlite_path
from storage.connection import Connection
from storage.outage import outage
from storage.pragmas import open_file
from storage.revision import Schema, schema_in
from storage.schema import ClaimTable, IntentTable, OauthClientTable, OrganisationTable, SigningKeyTable, WebhookEndpointTable
from storage.secrets.sealing import KEY_ID
from storage.statement import Query, sqlite_dialect, table
from storage.unreachable import unreachable

T = TypeVar("T")
BUSY_MS = 5_000
KEY_ID_LENGTH = 32
NEAREST = 100  # rows looked at for one that is sealed: an intent that waits for its plan, and a call under way, hold nothing yet


class Head(NamedTuple):
    """The beginning of a sealed value: enough for the key's id, too little for the secret."""

    head: str


Sealed = ClaimTable | IntentTable | OauthClientTable | SigningKeyTable | WebhookEndpointTable


def outermost(model: type[Sealed], order: str, sealed: str) -> tuple[Query[Head], Query[Head]]:
    """The newest sealed value of a table and the oldest, found by an index: an older key is missed by the oldest."""
    return one_end(model, order, sealed, newest=True), one_end(model, order, sealed, newest=False)


def one_end(model: type[Sealed], order: str, sealed: str, *, newest: bool) -> Query[Head]:
    """The first sealed value from one end of a table."""
    columns = table(model).c
    first = (
        sa.select(columns[order].label("place"), sa.func.substr(columns[sealed], 1, KEY_ID_LENGTH + 1).label("head"))
        .where(columns[order].is_not(None))
        .order_by(columns[order].desc() if newest else columns[order].asc())
        .limit(NEAREST)
        .subquery()
    )
    place = first.c.place.desc() if newest else first.c.place.asc()
    return Query(Head, sa.select(first.c.head).where(first.c.head.is_not(None)).order_by(place).limit(1))


ORGANISATION = table(OrganisationTable)
# Few organisations have a token of their own, and any of them may be the one: the whole table, which is short, is looked through.
OWN_TOKEN = Query(
    Head,
    sa.select(sa.func.substr(ORGANISATION.c.own_token, 1, KEY_ID_LENGTH + 1).label("head"))
    .where(ORGANISATION.c.own_token.is_not(None))
    .order_by(ORGANISATION.c.id.desc())
    .limit(1),
)
QUERIES = (
    OWN_TOKEN,
    *outermost(WebhookEndpointTable, "id", "secret"),
    *outermost(IntentTable, "id", "esim"),
    *outermost(ClaimTable, "expires_at", "body"),
    *outermost(SigningKeyTable, "number", "private"),
    *outermost(OauthClientTable, "created", "secret"),
)


def outermost_key_ids(connection: Connection) -> frozenset[str]:
    """The ids of the keys that sealed the newest and the oldest rows; what has not the form of a sealed value says nothing."""
    heads = [row.head.partition(".") for query in QUERIES if (row := connection.first(query)) is not None]
    return frozenset(key_id for key_id, dot, _ in heads if dot and KEY_ID.fullmatch(key_id))


def known(schema: Schema) -> bool:
    """Whether this program knows its version, or works on it all the same."""
    return schema.is_spoken or (schema.revision is not None and not schema.is_newer)


def spoken(schema: Schema) -> bool:
    """Whether this program works on it."""
    return schema.is_spoken


def sealed_key_ids(url: str) -> frozenset[str]:
    """The same for a database at an address; none for one that is absent, has no tables, or is a newer program's."""
    return read_closed(url, outermost_key_ids) or frozenset()


def read_closed(url: str, read: Callable[[Connection], T], *, fits: Callable[[Schema], bool] = known) -> T | None:
    """What `read` returns for the database at an address that no store has open; None for one that is absent or whose schema does
    not fit.
    """
    return of_sqlite(sqlite_path(url), read, fits) if is_sqlite(url) else of_postgres(url, read)


def of_sqlite(path: Path, read: Callable[[Connection], T], fits: Callable[[Schema], bool]) -> T | None:
    """Of a file, which is not made when it is absent."""
    if not path.exists():
        return None
    with closing(open_file(path, busy_ms=BUSY_MS)) as raw:
        try:
            return read(Connection(raw, sqlite_dialect())) if fits(schema_in(raw)) else None
        except sqlite3.Error as error:
            raise outage(error) or error from error


def of_postgres(url: str, read: Callable[[Connection], T]) -> T | None:
    """Of a PostgreSQL database, with one connection."""
    from psycopg import Error, errors  # only where PostgreSQL is used

    from storage.conninfo import START_SECONDS  # brings psycopg
    from storage.session import Session
    from storage.statement import postgresql_dialect

    session = Session(url, postgresql_dialect())
    timer = Timer(START_SECONDS, session.cut)
    timer.start()
    try:
        return session.run(read, read_only=True)
    except (errors.UndefinedTable, errors.UndefinedColumn):
        return None  # the check of the schema version, which comes next, says what is missing
    except Error as error:  # an address that cannot be read
        raise unreachable(error) from error
    except StoreUnavailable as refusal:
        if isinstance(refusal.__cause__, Error):
            raise unreachable(refusal.__cause__) from refusal.__cause__
        raise
    finally:
        timer.cancel()
        session.close()
