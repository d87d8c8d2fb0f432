"""Which networks new assignments are to use, by an organisation's own choice."""

from typing import Annotated, Literal, NotRequired, cast

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.network.references import STEERING
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import Data
from operations.services.network.reached import Upstream
from operations.services.network.reseller_lists import reseller_rows
from operations.services.network.upstream import reach
from operations.services.network.visible import require_steering_list
from registry.errors import NotFound, OcsError, OrgNotConnected
from registry.limits import Scope
from registry.model import CamelInput, Nothing
from registry.operation import Example, operation
from registry.policy import require_connection
from storage.network.network_defaults import find_network_default, put_network_default
from storage.people.directory import StoreDirectory

Mode = Literal["cheapest_available", "all", "custom"]


class NetworkChoice(CamelInput):
    """The choice to keep."""

    mode: Annotated[Mode, Field(description="custom: the steering list listId.")]
    list_id: Annotated[UpstreamId | None, Field(description="Id of list_steering_lists, with custom only.")] = None

    @model_validator(mode="after")
    def check(self) -> "NetworkChoice":
        """A list if, and only if, it is used."""
        if (self.mode == "custom") != (self.list_id is not None):
            raise ValueError("listId: the mode custom needs it, the other modes take none")
        return self


class Chosen(TypedDict):
    """A choice."""

    mode: Mode
    listId: NotRequired[int]


class Effective(Chosen):
    """What applies today, to new assignments only."""

    listName: NotRequired[str]
    note: NotRequired[Annotated[str, Field(description="Why it is not what was chosen")]]


class StoredDefault(Chosen):
    """The stored choice, and what comes of it."""

    effective: Effective


async def stored_choice(ctx: Ctx) -> tuple[Mode, int | None]:
    """What the organisation chose, or what holds for all who chose nothing."""
    stored = await ctx.deps.store.read(find_network_default, organisation=ctx.organisation)
    return ("cheapest_available", None) if stored is None else (cast(Mode, stored.mode), stored.list_id)


def choice(mode: Mode, list_id: int | None) -> Chosen:
    """A choice as it is shown."""
    return {"mode": mode} if list_id is None else {"mode": mode, "listId": list_id}


@operation(
    "GET",
    "/v1/network-default",
    raises=[OcsError],
    examples=[
        Example(
            "What do new assignments use?",
            {},
            {
                "data": {
                    "mode": "custom",
                    "listId": 17,
                    "effective": {"mode": "custom", "listId": 17, "listName": "Nordic first"},
                }
            },
        )
    ],
)
async def get_network_default(ctx: Ctx, params: Nothing) -> Data[StoredDefault]:
    """Show which networks new assignments use by default, and what applies today.

    set_network_default changes it; plan_network_default shows the networks of a country.

    Where nothing was chosen it is cheapest_available.
    """
    mode, list_id = await stored_choice(ctx)
    return {"data": {**choice(mode, list_id), "effective": await effective(ctx, mode, list_id)}}


async def effective(ctx: Ctx, mode: Mode, list_id: int | None) -> Effective:
    """The choice with its list's name. A list that has gone leaves what holds for all who chose nothing."""
    if list_id is None:
        return {"mode": mode}
    if ctx.caller.connection is None:
        return {"mode": mode, "listId": list_id, "note": "Your organisation has no connected account, so the list could not be looked up"}
    name = await list_name(await reach(ctx), list_id)
    if name is None:
        return {"mode": "cheapest_available", "note": f"Your reseller has no steering list {list_id} any more: choose again"}
    return {"mode": mode, "listId": list_id, "listName": name}


async def list_name(upstream: Upstream, list_id: int) -> str | None:
    """The name of a steering list of the caller's reseller; nothing when there is no such list."""
    rows = await reseller_rows(upstream, STEERING, None, upstream.ocs.reseller.list_steering_list)
    return next((row.get("name", "") for row in rows if row.get("id") == list_id), None)


async def list_there(ctx: Ctx, params: NetworkChoice) -> None:
    """A steering list that the caller's reseller has; the other modes need no account."""
    if params.list_id is not None:
        await require_connection(ctx.caller, StoreDirectory(ctx.deps.store), ctx.deps.site)
        await require_steering_list(await reach(ctx), params.list_id, "listId")


@operation(
    "PUT",
    "/v1/network-default",
    scope=Scope.WRITE,
    access=list_there,
    raises=[NotFound, OrgNotConnected, OcsError],
    examples=[Example("Prefer one list", {"mode": "custom", "listId": 17}, {"data": {"mode": "custom", "listId": 17}})],
)
async def set_network_default(ctx: Ctx, params: NetworkChoice, granted: None) -> Data[Chosen]:
    """Choose which networks new assignments use by default.

    Stored here only: no SIM is touched, nothing is written upstream.

    With custom the list is looked up once, so that it is one of yours.
    """
    return await ctx.settle(
        {"data": choice(params.mode, params.list_id)},
        put_network_default,
        organisation=ctx.organisation,
        mode=params.mode,
        list_id=params.list_id,
        now=ctx.now,
    )
