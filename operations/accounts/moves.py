"""Moving lines from one account to another."""

from typing import Annotated, NamedTuple

from pydantic import AliasChoices, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.accounts import AccountRef, UpstreamId, own_account, require_account
from operations.services.network.line_range import SHORTEST, LineRange, RangeType, members
from operations.services.network.passing import Data
from operations.services.network.reached import Upstream
from operations.services.network.visible import require_visible
from registry.context import Replacement
from registry.errors import BadRequest, EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation

Digits = Annotated[str, Field(pattern=r"^[0-9]{10,22}$")]


class MoveRange(AccountRef):
    """Which lines go where. The path names the account they leave."""

    range_type: Annotated[RangeType, Field(description="Kind of range.")]
    range_start: Annotated[Digits, Field(description="10-22 digits.")]
    range_end: Annotated[Digits, Field(description="10-22 digits.")]
    # Choice: accountId is the path's here, so the upstream's third spelling of the destination is not taken.
    dest_account: Annotated[
        UpstreamId, Field(validation_alias=AliasChoices("destAccount", "destAccountId"), description="Account they go to.")
    ]
    src_account_id: Annotated[UpstreamId | None, Field(description="As accountId.")] = None
    dest_network_profile_id: Annotated[UpstreamId | None, Field(description="For another reseller.")] = None


class Moved(TypedDict):
    """What was moved."""

    moved: Annotated[int, Field(description="How many lines")]


class Move(NamedTuple):
    """A move that was checked."""

    upstream: Upstream
    range: LineRange


async def may_move(ctx: Ctx, params: MoveRange) -> Move:
    """Both accounts are the caller's, and so is every single line in the range; an admin confirms that lines leave their reseller."""
    range_ = range_of(params)
    if params.dest_account == params.account_id and params.dest_network_profile_id is None:
        raise BadRequest("destAccount: the lines are there already", param="destAccount", hint="Name another account, or a network profile")
    upstream = (await own_account(ctx, params)).upstream
    await require_account(upstream, params.dest_account, "destAccount")
    source, destination = await resellers_of(upstream, params)
    await check_profile(upstream, params, source, destination)
    found = await members(upstream, range_)
    # Choice: lines that are in the destination already do not stop a move; else a repeated call could not be told its answer.
    if not found or any(row.get("accountId") not in (params.account_id, params.dest_account) for row in found):
        raise NotFound(
            "The range holds no line of this account, or other lines too; nothing was moved",
            param="rangeStart",
            hint="list_subscribers names the account's lines: move a range that holds nothing else",
        )
    if source != destination:
        ctx.confirm_replacement(leaving(params, source, destination))
    for account in (params.account_id, params.dest_account):
        await upstream.parts.lines_moved(upstream.place(account))
    return Move(upstream, range_)


def range_of(params: MoveRange) -> LineRange:
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
    shortest = SHORTEST[params.range_type]
    if len(range_.common) < shortest:
        raise BadRequest(
            f"rangeStart: start and end share their first {len(range_.common)} digits; a range of {params.range_type}s needs {shortest}",
            param="rangeStart",
            hint="Move the lines in several smaller ranges",
        )
    return range_


def leaving(params: MoveRange, source: int | None, destination: int | None) -> Replacement:
    """The question before lines go to another reseller."""
    return Replacement(
        f"This will move the lines {params.range_start} to {params.range_end} ({params.range_type}) from account {params.account_id} of "
        f"the reseller {source} to account {params.dest_account} of the reseller {destination}. They lose all packages at "
        "once, and its prices and profiles hold for them. Moving them back does not bring the packages back.",
        f"{source}|{destination}",
    )


async def resellers_of(upstream: Upstream, params: MoveRange) -> tuple[int | None, int | None]:
    """Whose the account is that the lines leave, and whose the one that they go to."""
    if upstream.managed:
        own = await upstream.reseller_id()
        return own, own
    return await reseller_of(upstream, params.account_id), await reseller_of(upstream, params.dest_account)


async def check_profile(upstream: Upstream, params: MoveRange, source: int | None, destination: int | None) -> None:
    """A named profile is one of the destination's reseller; another reseller's account cannot do without."""
    wanted = params.dest_network_profile_id
    if wanted is not None:
        await require_visible(
            upstream,
            f"profiles {destination}",
            lambda: upstream.ocs.zones.list_network_profile(reseller_id=destination),
            wanted,
            id="id",
            param="destNetworkProfileId",
            hint="list_network_profiles names them",
        )
    elif source != destination:
        raise BadRequest(
            "destNetworkProfileId: missing; the destination belongs to another reseller",
            param="destNetworkProfileId",
            hint="list_network_profiles names those of the destination's reseller",
        )


async def reseller_of(upstream: Upstream, account: int) -> int | None:
    """Whose account it is."""
    resellers = await upstream.reads.get((upstream.identity, "accounts"), upstream.ocs.reseller.list_reseller_account)
    return next((each.get("id") for each in resellers if any(row.get("id") == account for row in each.get("account", []))), None)


@operation(
    "POST",
    "/v1/accounts/{accountId}/move-subscribers",
    scope=Scope.WRITE,
    upstream=True,
    moves=True,
    replaces="the reseller that lines belong to",
    operator=True,
    title="Move lines to another account",
    access=may_move,
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
async def move_subscriber_range_to_account(ctx: Ctx, params: MoveRange, move: Move) -> Data[Moved]:
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
    return {"data": {"moved": moved}}
