"""Resolving an ICCID to the caller's own line: one read-only call, and a foreign line is not found."""

from typing import NamedTuple, Protocol

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.subscriber import Subscriber
from operations.deps import Ctx
from operations.services.network.line_history import in_use
from operations.services.network.reached import Upstream
from operations.services.network.upstream import reach
from operations.vocabulary import Iccid
from registry.errors import NotFound, OcsConflict, OcsError
from registry.model import CamelInput


class LineRef(CamelInput):
    """Which line."""

    iccid: Iccid


class NamesLine(Protocol):
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
        history = in_use(self.row.get("imsiList", ()))
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


async def own_line(ctx: Ctx, params: NamesLine) -> Line:
    """The access rule of every operation on one line."""
    return await reached_line(ctx, await reach(ctx), params.iccid)


async def reached_line(ctx: Ctx, upstream: Upstream, iccid: str, *, green_zone: bool = False) -> Line:
    """The line, of an account that the caller's credential is for."""
    line = await find_line(upstream, iccid, green_zone=green_zone)
    ctx.of_account(line.row.get("accountId"))
    return line


async def own_line_of_account(ctx: Ctx, params: NamesLine) -> None:
    """The access rule of what we keep about a line. Only a credential for named accounts has to know which one the line is in."""
    if ctx.caller.restrictions.account_ids is None:
        return
    if ctx.caller.connection is None:
        ctx.of_account(None)
    await own_line(ctx, params)


async def find_line(upstream: Upstream, iccid: str, *, green_zone: bool = False) -> Line:
    """The line, or the refusal that an unknown and a foreign one share."""
    try:
        row = await upstream.ocs.subscriber.get_single_subscriber(iccid, by="iccid", with_gz_counter=green_zone or None)
    except OcsNotFound:
        raise no_such_line() from None
    subscriber_id = row.get("subscriberId")
    if upstream.managed and row.get("accountId") != upstream.account_id:
        raise no_such_line()
    if subscriber_id is None:
        raise OcsError("The charging system answered without the line's number", before_execution=True)
    return Line(upstream, iccid, subscriber_id, row)


def no_such_line() -> NotFound:
    """Unknown and foreign lines are answered alike."""
    return NotFound(
        "Your account has no line with this ICCID",
        param="iccid",
        hint="list_subscribers finds lines by the beginning or the last digits of an ICCID, or by name",
    )
