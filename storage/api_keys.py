"""API keys: minted once, kept as a digest, with their restrictions."""

import json
from collections.abc import Callable, Sequence
from typing import Annotated, NamedTuple, cast

import sqlalchemy as sa
from sqlmodel import Field

from registry.caller import UNRESTRICTED, Approval, Money, Restrictions, SpendLimits
from storage.engine.sql import BigInt, Connection, Key, Query, TableDescription, all_rows, first_row, or_last, row_exists, writes
from storage.organisations import count_change
from storage.people import PERSON


class ApiKeyRow(NamedTuple):
    """A key without its secret."""

    id: Key
    prefix: str
    name: str
    description: str | None
    organisation_id: Annotated[str, Field(foreign_key="organisation.id", index=True)] | None
    person_id: Annotated[str, Field(foreign_key="person.id")]
    maker: str | None
    restrictions: str | None
    made_with: Annotated[str, Field(index=True)] | None
    expires_at: BigInt | None
    revoked_at: BigInt | None
    last_used_day: str | None
    created: BigInt


class ApiKeyTable(TableDescription, row=ApiKeyRow, without=("maker",), table=True):
    """An API key: only its SHA-256 is kept, and its first characters for people. `made_with`: the key or grant its maker presented."""

    digest: bytes = Field(unique=True)


API_KEY = ApiKeyTable.table

API_KEY_COLUMNS = [PERSON.c.name.label("maker") if name == "maker" else API_KEY.c[name] for name in ApiKeyRow._fields]

API_KEY_ROWS = sa.select(*API_KEY_COLUMNS).join_from(API_KEY, PERSON, API_KEY.c.person_id == PERSON.c.id)

KEY_OF_ORGANISATION = API_KEY.c.organisation_id == sa.bindparam("organisation")

KEY_OF_PERSON_ALONE = API_KEY.c.organisation_id.is_(None) & (API_KEY.c.person_id == sa.bindparam("person"))

API_KEY_PAGE = API_KEY_ROWS.where(API_KEY.c.id < sa.bindparam("after")).order_by(API_KEY.c.id.desc()).limit(sa.bindparam("most"))

API_KEY_IS_LIVE = (API_KEY.c.id == sa.bindparam("key"), API_KEY.c.revoked_at.is_(None))


class EndedKey(NamedTuple):
    """A key that was live until now."""

    id: str
    prefix: str
    organisation_id: str | None
    made_with: str | None


LogEndedKeys = Callable[[Connection, Sequence[EndedKey], float], None]
"""Writes the events of keys that have just ended, at a moment in Unix seconds."""

REVOKE_API_KEY = Query(EndedKey, lambda _: sa.update(API_KEY).where(*API_KEY_IS_LIVE).values(revoked_at=sa.bindparam("now")))

# What was made with a credential, with a key that was made with it, and so on.
KEYS_MADE_FIRST = sa.select(API_KEY.c.id).where(API_KEY.c.made_with == sa.bindparam("credential")).cte("made", recursive=True)

KEYS_MADE = KEYS_MADE_FIRST.union(sa.select(API_KEY.c.id).join_from(API_KEY, KEYS_MADE_FIRST, API_KEY.c.made_with == KEYS_MADE_FIRST.c.id))

REVOKE_KEYS_MADE = Query(
    EndedKey,
    sa.update(API_KEY)
    .where(API_KEY.c.id.in_(sa.select(KEYS_MADE.c.id)), API_KEY.c.revoked_at.is_(None))
    .values(revoked_at=sa.bindparam("now")),
)


@writes
def insert_key(
    *,
    id: str,
    digest: bytes,
    prefix: str,
    organisation: str | None,
    person: str,
    name: str,
    now: Annotated[float, int],
    description: str | None = None,
    expires_at: int | None = None,
    restrictions: str | None = None,
    made_with: str | None = None,
) -> sa.Executable:
    """Insert a key by its digest. `made_with`: the key or grant that made it, whose end ends it, too. `now`, `expires_at`: Unix seconds."""
    return sa.insert(API_KEY).values(
        id=id,
        digest=digest,
        prefix=prefix,
        organisation_id=organisation,
        person_id=person,
        name=name,
        description=description,
        restrictions=restrictions,
        made_with=made_with,
        expires_at=expires_at,
        created=now,
    )


def revoke_key(connection: Connection, *, key: str, organisation: str, now: float, log: LogEndedKeys | None = None) -> bool:
    """End a key of an organisation and those made with it; takes effect with the next call. `now`: Unix seconds."""
    row = find_key_row(connection, key=key)
    return row is not None and row.organisation_id == organisation and end_key(connection, key=key, now=now, log=log)


def end_key(connection: Connection, *, key: str, now: float, log: LogEndedKeys | None = None) -> bool:
    """End a key, and every key that was made with it: whoever had it may have made them. Whether it was live. `now`: Unix seconds.

    `log` gets the keys that have ended, here and in all that ends keys.
    """
    count_change(connection)  # first, as everywhere: it is a lock
    ended = connection.all(REVOKE_API_KEY, key=key, now=int(now))
    if not ended:
        return False
    if log is not None:
        log(connection, ended, now)
    end_keys_made_with(connection, credential=key, now=now, log=log)
    return True


def end_keys_made_with(connection: Connection, *, credential: str, now: float, log: LogEndedKeys | None = None) -> int:
    """End the keys that a key or a grant made, and those that were made with them; how many. `now`: Unix seconds."""
    ended = 0
    while more := connection.all(REVOKE_KEYS_MADE, credential=credential, now=int(now)):
        ended += len(more)  # again: the statement may have waited for somebody who made one more
        if log is not None:
            log(connection, more, now)
    return ended


@row_exists
def hold_key(*, key: str) -> sa.Executable:
    """Whether a key is live; it does not end before this transaction does."""
    # Whoever ends a key waits for those who make keys with it.
    return sa.select(API_KEY.c.id).where(*API_KEY_IS_LIVE).with_for_update(read=True)


@first_row(ApiKeyRow)
def find_key_row(*, key: str) -> sa.Executable:
    """The key with this id, of any organisation, or None."""
    return API_KEY_ROWS.where(API_KEY.c.id == key)


@all_rows(ApiKeyRow)
def list_keys(*, organisation: str, after: Annotated[str | None, or_last("key_")] = None, most: int = 1000) -> sa.Executable:
    """At most `most` keys of `organisation` behind the id `after`, newest first."""
    return API_KEY_PAGE.where(KEY_OF_ORGANISATION)


@all_rows(ApiKeyRow)
def list_own_keys(*, person: str, after: Annotated[str | None, or_last("key_")], most: int) -> sa.Executable:
    """At most `most` keys of `person` that act for no organisation, behind the id `after`, newest first."""
    return API_KEY_PAGE.where(KEY_OF_PERSON_ALONE)


# The text of `write_restrictions` for a key that is restricted to some tags.
NAMES_TAGS = API_KEY.c.restrictions.like('%"tags": [%')

KEYS_WITH_TAGS = Query(
    str,
    lambda _: sa.select(API_KEY.c.restrictions).where(
        KEY_OF_ORGANISATION,
        API_KEY.c.revoked_at.is_(None),
        sa.or_(API_KEY.c.expires_at.is_(None), API_KEY.c.expires_at > sa.bindparam("now", type_=sa.Double)),
        NAMES_TAGS,
    ),
)


def guarded_tags(connection: Connection, *, organisation: str, now: float) -> frozenset[str]:
    """The tags that restrictions of the organisation's live keys name. `now`: Unix seconds.

    Whoever makes such a key holds the organisation's row (`lock_organisation`), as whoever sets or removes tags does.
    """
    texts = connection.all(KEYS_WITH_TAGS, organisation=organisation, now=now)
    return frozenset(tag for text in texts for tag in read_restrictions(text).tags or ())


def read_restrictions(text: str | None) -> Restrictions:
    """The restrictions whose text `write_restrictions` made; the shared object for none, which the pipeline knows by identity."""
    if text is None:
        return UNRESTRICTED
    members = cast("dict[str, object]", json.loads(text))
    values = {name: tuple(cast("list[object]", value)) if isinstance(value, list) else value for name, value in members.items()}
    values["limits"] = tuple(read_limits(each) for each in cast("Sequence[dict[str, object]]", values.get("limits", ())))
    values["approval"] = Approval(cast(str, values.get("approval", Approval.NONE)))
    return cast("Callable[..., Restrictions]", Restrictions)(**values)


def read_limits(members: dict[str, object]) -> SpendLimits:
    amounts = {name: Money(*cast("tuple[int, str]", value)) for name, value in members.items() if name in MONEY_LIMITS and value}
    times = tuple((name, calls) for name, calls in cast("list[tuple[str, int]]", members["times"]))
    return SpendLimits(counted_as=cast(str, members["counted_as"]), times=times, **amounts)


MONEY_LIMITS = ("per_call", "per_day", "per_month", "approve_above")


def write_restrictions(restrictions: Restrictions) -> str | None:
    """The text of a row; none for no restriction at all."""
    if restrictions == UNRESTRICTED:
        return None
    members = {name: getattr(restrictions, name) for name in Restrictions.__slots__}
    limits = [{name: getattr(each, name) for name in SpendLimits.__slots__} for each in restrictions.limits]
    return json.dumps({**members, "limits": limits}, sort_keys=True)
