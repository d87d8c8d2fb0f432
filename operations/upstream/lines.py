"""Lines: an ICCID is resolved to the caller's own line by one read-only call, and a foreign line is not found.

A line's row is shown with what holds now of its histories, and without PIN and PUK.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, NamedTuple, Protocol, cast

from pydantic import Field
from typing_extensions import TypedDict

from clients.ocs.outcome import OcsNotFound
from clients.ocs.wire.subscriber import Subscriber, SubscriberFields, Utc
from clients.ocs.wire.values import keeps_unknown
from operations.caches.account_parts import HistoryEntry, entry_in_use, entry_start, open_entries
from operations.deps import Ctx
from operations.upstream.connection import Upstream, connect_upstream
from operations.vocabulary import Iccid
from registry.errors import NotFound, OcsConflict, OcsError
from registry.model import CamelInput


def current_entry(rows: Sequence[HistoryEntry]) -> HistoryEntry | None:
    """The row without an end; where there are several, or none, the newest of them."""
    if len(rows) == 1:
        return rows[0]
    return max(open_entries(rows) or rows, key=entry_start, default=None)


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


class LineRef(CamelInput):
    """Which line."""

    iccid: Iccid


class HasIccid(Protocol):
    """An input with an ICCID."""

    @property
    def iccid(self) -> str: ...


class Line(NamedTuple):
    """A line of the caller's, and the way to it."""

    upstream: Upstream
    iccid: str
    subscriber_id: int
    row: Subscriber

    @property
    def imsi(self) -> str:
        """The active IMSI."""
        history = entry_in_use(self.row.get("imsiList", ()))
        found = None if history is None else history.get("imsi")
        if found is None:
            raise OcsConflict("The charging system knows no active IMSI of this line, and this operation needs one", before_execution=True)
        return found

    @property
    def sim_id(self) -> int:
        """The number of the SIM or profile."""
        found = self.row.get("sim", {}).get("id")
        if found is None:
            raise OcsConflict("The charging system knows no SIM of this line, and this operation needs one", before_execution=True)
        return found


async def own_line(ctx: Ctx, params: HasIccid) -> Line:
    """The access rule of every operation on one line."""
    return await find_own_line(ctx, await connect_upstream(ctx), params.iccid)


async def find_own_line(ctx: Ctx, upstream: Upstream, iccid: str, *, green_zone: bool = False) -> Line:
    """The line, of an account that the caller's credential is for."""
    line = await find_line(upstream, iccid, green_zone=green_zone)
    ctx.of_account(line.row.get("accountId"))
    return line


async def find_line(upstream: Upstream, iccid: str, *, green_zone: bool = False) -> Line:
    """The line, or the refusal that an unknown and a foreign one share."""
    try:
        row = await upstream.ocs.subscriber.get_single_subscriber(iccid, by="iccid", with_gz_counter=green_zone or None)
    except OcsNotFound:
        raise line_not_found() from None
    subscriber_id = row.get("subscriberId")
    if upstream.managed and row.get("accountId") != upstream.account_id:
        raise line_not_found()
    if subscriber_id is None:
        raise OcsError("The charging system answered without the line's number", before_execution=True)
    return Line(upstream, iccid, subscriber_id, row)


def line_not_found() -> NotFound:
    """Unknown and foreign lines are answered alike."""
    return NotFound(
        "Your account has no line with this ICCID",
        param="iccid",
        hint="list_subscribers finds lines by the beginning or the last digits of an ICCID, or by name",
    )
