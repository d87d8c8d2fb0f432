"""Tables of what the network and its bridge tell, and of what organisations keep about it. Part of the schema, as those of schema.py."""

import sqlalchemy as sa
from sqlmodel import Field

from storage.named import Named


class MeteredLineTable(Named, table=True):
    """Usage the network metered, as the bridge reported it; `ref` makes a repeated line have no effect."""

    ref: str = Field(primary_key=True, sa_type=sa.Text)
    intent: str | None = Field(default=None, sa_type=sa.Text)
    iccid: str = Field(index=True, sa_type=sa.Text)
    bytes: int = Field(sa_type=sa.BigInteger)
    usage_type: str = Field(sa_type=sa.Text)
    mcc: str | None = Field(default=None, sa_type=sa.Text)
    mnc: str | None = Field(default=None, sa_type=sa.Text)
    occurred_at: float = Field(sa_type=sa.Double)
    stored: int = Field(sa_type=sa.BigInteger)


class NetworkEventTable(Named, table=True):
    """What the bridge observed about an intent's line."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    intent: str = Field(index=True, sa_type=sa.Text)
    iccid: str = Field(sa_type=sa.Text)
    bridge_type: str = Field(sa_type=sa.Text)
    mcc: str | None = Field(default=None, sa_type=sa.Text)
    mnc: str | None = Field(default=None, sa_type=sa.Text)
    data: str = Field(sa_type=sa.Text)
    occurred_at: float = Field(sa_type=sa.Double)
    created: int = Field(sa_type=sa.BigInteger)


class CountryEntryTable(Named, table=True):
    """A line came into a country: the ring behind country-history, the newest 50 of a line. `account_id` is whose it was then."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    iccid: str = Field(sa_type=sa.Text)
    country: str = Field(sa_type=sa.Text)
    mcc: str = Field(sa_type=sa.Text)
    mnc: str | None = Field(default=None, sa_type=sa.Text)
    account_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    occurred_at: float = Field(sa_type=sa.Double)
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("country_entry_line", "iccid", "occurred_at"), sa.Index("country_entry_age", "occurred_at"))


class InboundPushTable(Named, table=True):
    """A notification that was taken: its id or the SHA-256 of its body, so that a repeat changes nothing."""

    digest: str = Field(primary_key=True, sa_type=sa.Text)
    received: float = Field(sa_type=sa.Double, index=True)


class PlacedPackageTable(Named, table=True):
    """A package that somebody put on a line they named, through us: no draw whose answer was lost made it."""

    package_id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})
    placed: float = Field(sa_type=sa.Double, index=True)


class EarlySightingTable(Named, table=True):
    """What was reported of a line, or of a package, that was nobody's while an eSIM was being drawn; of each kind the one that counts.

    `since` tells totals of different owners apart: when the newest eSIM that may have been meant was sent for.
    """

    subject: str = Field(primary_key=True, sa_type=sa.Text)
    kind: str = Field(primary_key=True, sa_type=sa.Text)
    since: float = Field(primary_key=True, sa_type=sa.Double)
    bridge_type: str = Field(sa_type=sa.Text)
    mcc: str | None = Field(default=None, sa_type=sa.Text)
    mnc: str | None = Field(default=None, sa_type=sa.Text)
    data: str = Field(sa_type=sa.Text)
    occurred_at: float = Field(sa_type=sa.Double)
    country: str | None = Field(default=None, sa_type=sa.Text)
    used_bytes: int | None = Field(default=None, sa_type=sa.BigInteger)
    received: float = Field(sa_type=sa.Double, index=True)


class SubscriberNoteTable(Named, table=True):
    """One entry of an organisation's support history of a line; append-only."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    iccid: str = Field(sa_type=sa.Text)
    note: str = Field(sa_type=sa.Text)
    author: str | None = Field(default=None, sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("subscriber_note_line", "organisation", "iccid", "id"),)


class SubscriberNotesTable(Named, table=True):
    """An organisation's one text about a line."""

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    iccid: str = Field(primary_key=True, sa_type=sa.Text)
    notes: str = Field(sa_type=sa.Text)
    updated: int = Field(sa_type=sa.BigInteger)


class NetworkDefaultTable(Named, table=True):
    """Which networks an organisation's new assignments use: cheapest_available, all, or custom with a steering list."""

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    mode: str = Field(sa_type=sa.Text)
    list_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    updated: int = Field(sa_type=sa.BigInteger)


class UpstreamObjectTable(Named, table=True):
    """What an organisation created on a shared reseller: only its creator may change it. `kind` is template or zone."""

    kind: str = Field(primary_key=True, sa_type=sa.Text)
    id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})
    organisation: str = Field(sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)


class AccountListingTable(Named, table=True):
    """What is known of an account with more lines than one answer of the charging system lists. Only hints: rows are always read live.

    `lines` is how many there were, `complete` 0 or 1 whether the parts hold all of them; `read`: when they were all read; `checked`:
    when the charging system last counted as many; 0: lines were moved since. `credential` is a digest of the token that reads it.
    """

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    credential: str = Field(primary_key=True, sa_type=sa.Text)
    account_id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})
    lines: int
    complete: int
    read: float = Field(sa_type=sa.Double)
    checked: float = Field(sa_type=sa.Double, index=True)


class AccountPartTable(Named, table=True):
    """The lines of such an account whose ICCIDs begin alike: from the lowest to the highest subscriber id, and `members` as JSON.

    `read`: when the whole part was read last; `changed`: when the row was written, so that a process knows whether it has these members.
    """

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    credential: str = Field(primary_key=True, sa_type=sa.Text)
    account_id: int = Field(primary_key=True, sa_type=sa.BigInteger, sa_column_kwargs={"autoincrement": False})
    prefix: str = Field(primary_key=True, sa_type=sa.Text)
    lowest: int = Field(sa_type=sa.BigInteger)
    highest: int = Field(sa_type=sa.BigInteger)
    lines: int
    read: float = Field(sa_type=sa.Double)
    changed: float = Field(sa_type=sa.Double)
    members: str = Field(sa_type=sa.Text)
