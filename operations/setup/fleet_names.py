"""Whether the names and addresses of customers are kept with the lines of the fleet."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from registry.caller import Role
from registry.operation import Example, Input, Scope, SpendKind, operation
from storage.engine.sql import Connection, runs_in_thread
from storage.fleet_lines import rewrite_names
from storage.fleets import choose_personal, current_fleets, fleets_of_organisation, list_fleet_again


class FleetNamesChoice(Input):
    """Whether they are kept."""

    kept: Annotated[bool, Field(description="true: kept, so that query_fleet finds them at once; false: erased here, and looked for live.")]


class FleetNames(TypedDict):
    """What holds from now on."""

    object: Literal["fleet.names"]
    kept: bool


@operation(
    "PUT",
    "/v1/fleet/names",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    role=Role.ADMIN,
    tool=False,
    title="Keep fleet names",
    examples=[
        Example("Keep no names", {"kept": False}, {"object": "fleet.names", "kept": False}),
        Example("Keep them again", {"kept": True}, {"object": "fleet.names", "kept": True}),
    ],
)
async def set_fleet_names(ctx: Ctx, params: FleetNamesChoice) -> FleetNames:
    """Choose whether customers' names are kept with the lines of the fleet.

    Needs the role admin, on any tier. fleet_sync_status says in `names_kept` what holds.

    Names, companies, e-mail addresses and phone numbers of lines are kept in our database so that query_fleet finds them at once. With
    `kept` false all of them are erased in the same moment; a search by name then asks the charging system and takes longer. With `kept`
    true they are there again when the fleet has been listed, within minutes; those of buyers who were erased, and of lines that have
    ended, never come back. Where nobody has chosen, whoever runs the service has.
    """
    answer: FleetNames = {"object": "fleet.names", "kept": params.kept}
    return await ctx.settle(answer, choose_fleet_names, organisation=ctx.organisation, kept=params.kept, now=ctx.now)


@runs_in_thread
def choose_fleet_names(connection: Connection, *, organisation: str, kept: bool, now: float) -> None:
    """Remembers the choice, and erases what is there; the next listing writes names again where they are kept. `now`: Unix seconds."""
    choose_personal(connection, organisation=organisation, personal=int(kept))
    for fleet in current_fleets(connection, organisation=organisation):
        # First, since a listing that is being written now holds the row: what it has written is erased as well.
        list_fleet_again(connection, fleet=fleet, now=now)
    for fleet in fleets_of_organisation(connection, organisation=organisation):
        rewrite_names(connection, fleet=fleet)
