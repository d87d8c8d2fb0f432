"""Resolving an ICCID to the caller's own line: one read-only call, and a foreign line is not found."""

from typing import NamedTuple, Protocol

from clients.ocs.outcome import OcsNotFound
from clients.ocs.wire.subscriber import Subscriber
from operations.deps import Ctx
from operations.upstream.access import connect_upstream
from operations.upstream.connection import Upstream
from operations.upstream.line_rows import entry_in_use
from operations.vocabulary import Iccid
from registry.errors import NotFound, OcsConflict, OcsError
from registry.model import CamelInput


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
