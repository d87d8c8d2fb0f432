"""Moving a range of lines (ICCIDs or IMSIs) from one account to another; the lines are read first, so that each can be checked."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal, NamedTuple

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from clients.ocs.subscribers import Subscriber, SubscriberList
from operations.deps import Ctx
from operations.fleet.line_news import settle_moved_lines
from operations.upstream.connection import AccountRef, Upstream, own_account, require_own_account
from operations.upstream.paging import Data
from operations.upstream.resellers import NETWORK_PROFILE_LIST, require_row
from operations.vocabulary import UpstreamId
from registry.context import Replacement
from registry.errors import BadRequest, EndOfLife, NotFound, OcsError, OcsNotFound
from registry.operation import Example, Scope, SpendKind, operation

LineRangeType = Literal["IMSI", "ICCID"]
RANGE_PREFIX_DIGITS = {"IMSI": 10, "ICCID": 13}
# Choice: so many lines move at once, and so many calls find them; larger fleets are moved in several ranges.
RANGE_LINE_LIMIT = 1000
RANGE_CALL_LIMIT = 50


class LineRange(NamedTuple):
    """From first to last, both included, of the same length."""

    kind: LineRangeType
    first: str
    last: str

    @property
    def common(self) -> str:
        """What all numbers of the range begin with."""
        same = next((place for place, (a, b) in enumerate(zip(self.first, self.last, strict=True)) if a != b), len(self.first))
        return self.first[:same]

    def touches(self, prefix: str) -> bool:
        """Whether numbers that begin so may lie in the range."""
        return self.first[: len(prefix)] <= prefix <= self.last[: len(prefix)]

    def holds(self, number: str) -> bool:
        """Whether a number lies in it. Choice: one that is longer counts by its beginning, since some networks compare text."""
        return self.first <= number and number[: len(self.last)] <= self.last

    def member(self, row: Subscriber) -> bool:
        """Whether the line has, or had, a number in the range: former ones count too, since the charging system may move their lines."""
        histories = row.get("imsiList", [])
        numbers = [past.get("imsi", "") if self.kind == "IMSI" else past.get("iccid", "") for past in histories]
        return any(self.holds(number) for number in numbers if number)


async def lines_in_range(upstream: Upstream, range_: LineRange) -> list[Subscriber]:
    """Every line in the range, of any account. Raises BadRequest where the range cannot be read whole. Waits for the network."""
    waiting, found = [range_.common], dict[int, Subscriber]()
    asked = 0
    while waiting:
        if asked == RANGE_CALL_LIMIT:
            raise range_too_large()
        asked += 1
        prefix = waiting.pop()
        answer = await search_range_prefix(upstream, range_.kind, prefix)
        if answer.get("hasMore"):
            if len(prefix) == len(range_.first):
                raise range_too_large()
            waiting += [longer for longer in (f"{prefix}{digit}" for digit in range(10)) if range_.touches(longer)]
            continue
        found |= {row.get("subscriberId", 0): row for row in answer.get("subscriberList", []) if range_.member(row)}
        if len(found) > RANGE_LINE_LIMIT:
            raise range_too_large()
    return list(found.values())


async def search_range_prefix(upstream: Upstream, kind: LineRangeType, prefix: str) -> SubscriberList:
    """The lines whose number begins so."""
    try:
        return await upstream.ocs.subscriber.list_subscriber(prefix, by="imsiPrefix" if kind == "IMSI" else "iccidPrefix")
    except OcsNotFound:
        return {}


def range_too_large() -> BadRequest:
    return BadRequest(
        f"rangeEnd: the range holds more than {RANGE_LINE_LIMIT} lines, or more than can be checked",
        param="rangeEnd",
        hint="Move the lines in several smaller ranges",
    )


RangeDigits = Annotated[str, Field(pattern=r"^[0-9]{10,22}$")]


class MoveRange(AccountRef):
    """Which lines go where. The path names the account they leave."""

    range_type: Annotated[LineRangeType, Field(description="Kind of range.")]
    range_start: Annotated[RangeDigits, Field(description="10-22 digits.")]
    range_end: Annotated[RangeDigits, Field(description="10-22 digits.")]
    # Choice: accountId is the path's here, so the upstream's third spelling of the destination is not taken.
    dest_account: Annotated[
        UpstreamId, Field(validation_alias=AliasChoices("destAccount", "destAccountId"), description="Account they go to.")
    ]
    src_account_id: Annotated[UpstreamId | None, Field(description="As accountId.")] = None
    dest_network_profile_id: Annotated[UpstreamId | None, Field(description="For another reseller.")] = None


class Moved(TypedDict):
    """What was moved."""

    moved: Annotated[int, Field(description="How many lines")]


class LineMove(NamedTuple):
    """A move that was checked."""

    upstream: Upstream
    range: LineRange
    numbers: tuple[int, ...]
    """The subscriber ids of its lines."""


async def own_line_move(ctx: Ctx, params: MoveRange) -> LineMove:
    """The move, if both accounts and every line in the range are the caller's; raises NotFound or BadRequest. Waits for the network.

    An admin confirms that lines leave their reseller.
    """
    range_ = checked_range(params)
    if params.dest_account == params.account_id and params.dest_network_profile_id is None:
        raise BadRequest("destAccount: the lines are there already", param="destAccount", hint="Name another account, or a network profile")
    upstream = (await own_account(ctx, params)).upstream
    await require_own_account(upstream, params.dest_account, "destAccount")
    if upstream.managed:
        source = destination = await upstream.reseller_id()
    else:
        source, destination = [await account_reseller(upstream, account) for account in (params.account_id, params.dest_account)]
    await check_move_profile(upstream, params, source, destination)
    found = await lines_in_range(upstream, range_)
    # Choice: lines that are in the destination already do not stop a move; else a repeated call could not be told its answer.
    if not found or any(row.get("accountId") not in (params.account_id, params.dest_account) for row in found):
        raise NotFound(
            "The range holds no line of this account, or other lines too; nothing was moved",
            param="rangeStart",
            hint="list_subscribers names the account's lines: move a range that holds nothing else",
        )
    if source != destination:
        ctx.confirm_replacement(reseller_change(params, source, destination))
    for account in (params.account_id, params.dest_account):
        await upstream.parts.lines_moved(upstream.place(account))
    return LineMove(upstream, range_, tuple(row.get("subscriberId", 0) for row in found))


def checked_range(params: MoveRange) -> LineRange:
    """The range, if it is one and can be checked."""
    if params.src_account_id not in (None, params.account_id):
        raise BadRequest(
            f"srcAccountId: got {params.src_account_id}; the lines leave the account of the path",
            param="srcAccountId",
            hint=f"Leave it out, or send {params.account_id}",
        )
    first, last = params.range_start, params.range_end
    if len(first) != len(last) or first > last:
        raise BadRequest(
            "rangeEnd: it must have as many digits as rangeStart and not come before it", param="rangeEnd", hint="Both are included"
        )
    range_ = LineRange(params.range_type, first, last)
    shortest = RANGE_PREFIX_DIGITS[params.range_type]
    if len(range_.common) < shortest:
        raise BadRequest(
            f"rangeStart: start and end share their first {len(range_.common)} digits; a range of {params.range_type}s needs {shortest}",
            param="rangeStart",
            hint="Move the lines in several smaller ranges",
        )
    return range_


def reseller_change(params: MoveRange, source: int | None, destination: int | None) -> Replacement:
    """The question before lines go to another reseller."""
    return Replacement(
        f"This will move the lines {params.range_start} to {params.range_end} ({params.range_type}) from account {params.account_id} of "
        f"the reseller {source} to account {params.dest_account} of the reseller {destination}. They lose all packages at "
        "once, and its prices and profiles hold for them. Moving them back does not bring the packages back.",
        f"{source}|{destination}",
    )


async def check_move_profile(upstream: Upstream, params: MoveRange, source: int | None, destination: int | None) -> None:
    """Raises NotFound for a profile that the destination's reseller lacks, BadRequest where another reseller needs one."""
    wanted = params.dest_network_profile_id
    if wanted is not None:
        listed = replace(NETWORK_PROFILE_LIST, hint="list_network_profiles names them")
        profiles = partial(upstream.ocs.zones.list_network_profile, reseller_id=destination)
        await require_row(upstream, listed, f"profiles {destination}", wanted, "destNetworkProfileId", profiles)
    elif source != destination:
        raise BadRequest(
            "destNetworkProfileId: missing; the destination belongs to another reseller",
            param="destNetworkProfileId",
            hint="list_network_profiles names those of the destination's reseller",
        )


async def account_reseller(upstream: Upstream, account: int) -> int | None:
    resellers = await upstream.reads.get((upstream.identity, "accounts"), upstream.ocs.reseller.list_reseller_account)
    return next((each.get("id") for each in resellers if any(row.get("id") == account for row in each.get("account", []))), None)


@operation(
    "POST",
    "/v1/accounts/{accountId}/move-subscribers",
    spends=SpendKind.NOTHING,
    scope=Scope.WRITE,
    upstream=True,
    moves=True,
    replaces="the reseller that lines belong to",
    operator=True,
    title="Move lines to another account",
    access=own_line_move,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Hand ten lines over to the fleet account",
            {
                "accountId": 8101,
                "rangeType": "ICCID",
                "rangeStart": "8988303700000100200",
                "rangeEnd": "8988303700000100299",
                "destAccount": 8102,
            },
            {"data": {"moved": 10}},
        )
    ],
)
async def move_subscriber_range_to_account(ctx: Ctx, params: MoveRange, move: LineMove) -> Data[Moved]:
    """Move a range of lines between your accounts.

    Up to 1000 lines, all yours. Packages do not go to another reseller; an admin confirms.

    Packages are lost where the destination is another reseller's account. The ends share at least their first 13 digits (ICCID) or 10
    digits (IMSI). With `destNetworkProfileId` the profile changes too, also within one account.
    """
    moved = await move.upstream.ocs.subscriber.move_range(
        move.range.kind,
        move.range.first,
        move.range.last,
        source=params.account_id,
        destination=params.dest_account,
        destination_profile=params.dest_network_profile_id,
    )
    ctx.at_close(
        settle_moved_lines,
        organisation=ctx.organisation,
        numbers=move.numbers,
        account=params.dest_account,
        now=ctx.now,
        ids=ctx.deps.ids,
    )
    return {"data": {"moved": moved}}
