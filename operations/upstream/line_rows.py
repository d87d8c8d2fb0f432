"""A line's row of the charging system: what holds now of its histories, and the row as operators see it, without PIN and PUK."""

from collections.abc import Mapping, Sequence
from typing import Annotated, TypeVar, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.wire.subscriber import Subscriber, SubscriberFields, Utc
from clients.ocs.wire.values import keeps_unknown

HistoryEntry = TypeVar("HistoryEntry", bound=Mapping[str, object])


def current_entry(rows: Sequence[HistoryEntry]) -> HistoryEntry | None:
    """The row without an end; where there are several, or none, the newest of them."""
    if len(rows) == 1:
        return rows[0]
    return max(open_entries(rows) or rows, key=entry_start, default=None)


def entry_in_use(rows: Sequence[HistoryEntry]) -> HistoryEntry | None:
    """The newest row without an end."""
    return max(open_entries(rows), key=entry_start, default=None)


def open_entries(rows: Sequence[HistoryEntry]) -> list[HistoryEntry]:
    """Those without an end."""
    return [row for row in rows if row.get("endDate") is None]


def entry_start(row: Mapping[str, object]) -> tuple[str, int]:
    """When a row of a history began; ids settle what began at once."""
    number = row.get("id")
    return str(row.get("startDate") or ""), number if isinstance(number, int) else 0


SIM_SECRETS = frozenset({"pin1", "puk1", "pin2", "puk2"})


@keeps_unknown
class PublicSim(TypedDict, total=False):
    """The SIM of a line. The activation code is a secret of whoever installs the profile."""

    id: int
    subscriberId: int
    esim: bool
    status: Annotated[str, Field(description="FREE or AFFECTED")]
    affectationDateUtc: Utc
    smdpServer: str
    activationCode: str
    confirmationCode: str


@keeps_unknown
class SubscriberRow(SubscriberFields, total=False):
    """A line as the network knows it."""

    iccid: Annotated[str | None, Field(description="The one in use")]
    imsi: Annotated[str | None, Field(description="The one in use")]
    msisdn: Annotated[str | None, Field(description="The phone number in use, digits without plus")]
    currentStatus: Annotated[str | None, Field(description="The last row of `status`: Active, Inactive, Suspended, ...")]
    sim: PublicSim


def current_line_status(row: Subscriber) -> object:
    """The status that holds now, before the row is made public; a network that names it itself is believed."""
    named: Mapping[str, object] = row
    status = current_entry(row.get("status", ()))
    return named.get("currentStatus", status.get("status") if status else None)


def public_line_row(row: Subscriber) -> SubscriberRow:
    """The line with `currentStatus`, its identifiers in use, and without what unlocks the card."""
    imsi, number = current_entry(row.get("imsiList", ())), current_entry(row.get("phoneNumberList", ()))
    shown: dict[str, object] = {
        "iccid": imsi.get("iccid") if imsi else None,
        "imsi": imsi.get("imsi") if imsi else None,
        "msisdn": number.get("phoneNumber") if number else None,
        "currentStatus": current_line_status(row),
        **row,
    }
    sim = row.get("sim")
    if sim is not None:
        shown["sim"] = {name: value for name, value in sim.items() if name not in SIM_SECRETS}
    return cast(SubscriberRow, shown)


def subscriber_number(row: Subscriber | SubscriberRow) -> int:
    """The number of a line."""
    return row.get("subscriberId", 0)


def iccid_in_use(row: Subscriber) -> str | None:
    """The ICCID in use: the one without an end."""
    history = entry_in_use(row.get("imsiList", ()))
    return None if history is None else history.get("iccid")


def iccid_with_prefix(row: Subscriber, prefix: str) -> str:
    """The ICCID by which a line is found under a prefix: the one in use, else a former one; the prefix itself where it has none."""
    current = iccid_in_use(row)
    if current is not None and current.startswith(prefix):
        return current
    return next((iccid for past in row.get("imsiList", ()) if (iccid := past.get("iccid", "")).startswith(prefix)), prefix)
