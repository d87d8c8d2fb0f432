"""The status of a line, the state of its SIM, and which traffic it is allowed."""

from typing import Annotated, Literal, NamedTuple, NotRequired

from pydantic import AliasChoices, BeforeValidator, Field, model_validator
from typing_extensions import TypedDict

from clients.ocs.subscribers import ProviderStatus
from operations.deps import Ctx
from operations.upstream.lines import Line, LineRef, line_status_word, note_line, own_line
from operations.upstream.package_losses import line_package_losses, losses_challenge
from operations.upstream.paging import Data
from registry.challenge import Challenge, describe_loss, name_losses
from registry.errors import BadRequest, EndOfLife, NotFound, OcsError, OcsNotFound
from registry.operation import Example, Scope, SpendKind, operation
from storage.fleet_erasure import erase_line
from storage.line_changes import LineChange, record_line_change
from storage.line_tags import end_tags

LineStatusTarget = Literal["ACTIVE", "SUSPENDED", "INACTIVE", "DISCONNECTED", "END_OF_LIFE"]


def canonical_target_status(value: object) -> object:
    """TERMINATED is a synonym of END_OF_LIFE."""
    return "END_OF_LIFE" if value == "TERMINATED" else value


class LineStatusChange(LineRef):
    """What the line becomes."""

    status: Annotated[
        LineStatusTarget, BeforeValidator(canonical_target_status), Field(description="New status; only ACTIVE lines can be used.")
    ]
    irreversible: Annotated[bool, Field(description="true for END_OF_LIFE, which is final.")] = False

    @model_validator(mode="after")
    def check(self) -> "LineStatusChange":
        """Raises ValueError unless an irreversible change is confirmed by a second field."""
        if self.status == "END_OF_LIFE" and not self.irreversible:
            raise ValueError(
                "status END_OF_LIFE is final: the line can never be used again. "
                "Send irreversible: true to do it, or SUSPENDED to pause the line"
            )
        return self


def note_change(ctx: Ctx, line: Line, kind: Literal["status", "data"], value: str) -> None:
    """Records, in the commit that ends the call, who changed this of the line: the charging system does not tell."""
    change = LineChange(kind, value, ctx.now, ctx.caller.kind, ctx.caller.principal, ctx.caller.key_id)
    ctx.at_close(record_line_change, organisation=ctx.organisation, iccid=line.iccid, change=change)


async def name_status_change(ctx: Ctx, params: LineStatusChange, line: Line) -> Challenge:
    """What the line was and becomes; where it ends, all its packages. Waits for the network then."""
    begin = f"This will make the line {params.iccid}, which is {line_status_word(line.row)} now, {params.status}"
    if params.status != "END_OF_LIFE":
        return Challenge(f"{begin}. modify_subscriber_status can set another status afterwards.")
    losses = (describe_loss("line", params.iccid, status=line_status_word(line.row)), *await line_package_losses(line, ctx.now))
    return losses_challenge(begin, losses, "It cannot be undone: the line can never be used again, and what is unused is lost.")


class StatusChanged(TypedDict):
    """What applies now."""

    status: LineStatusTarget


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/status",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    upstream=True,
    moves=True,
    operator=True,
    access=own_line,
    challenge=name_status_change,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[Example("Pause a line", {"iccid": "8988303700000100286", "status": "SUSPENDED"}, {"data": {"status": "SUSPENDED"}})],
)
async def modify_subscriber_status(ctx: Ctx, params: LineStatusChange, line: Line) -> Data[StatusChanged]:
    """Activate, suspend, deactivate or end a line.

    SUSPENDED and INACTIVE can be undone with ACTIVE; END_OF_LIFE cannot. modify_package_status pauses one package only.

    TERMINATED is taken as END_OF_LIFE. A line that has ended answers 409 `subscriber_end_of_life`.
    """
    await line.upstream.ocs.subscriber.modify_status(line.subscriber_id, params.status)
    note_line(ctx, line, status=params.status, status_since=ctx.now)
    note_change(ctx, line, "status", params.status)
    if params.status == "END_OF_LIFE":
        ctx.at_close(erase_line, organisation=ctx.organisation, subscriber_id=line.subscriber_id)
        ctx.at_close(end_tags, organisation=ctx.organisation, iccids=[line.iccid])
    return {"data": {"status": params.status}}


SIM_STATUS_EXAMPLE: ProviderStatus = {
    "simId": 760112,
    "status": "Enable",
    "start": "2026-11-02T07:12:44",
    "profileType": "P1",
    "statusModification": "Executed-Success",
}


@operation(
    "GET",
    "/v1/subscribers/{iccid}/sim-status",
    upstream=True,
    operator=True,
    title="Get profile history",
    access=own_line,
    raises=[NotFound, OcsError],
    examples=[Example("Did the customer install the eSIM?", {"iccid": "8988303700000100286"}, {"data": [SIM_STATUS_EXAMPLE]})],
)
async def get_sim_provider_status(ctx: Ctx, params: LineRef, line: Line) -> Data[list[ProviderStatus] | None]:
    """Get the life of an eSIM profile: released, downloaded, installed, enabled.

    Newest first; null when its provider has said nothing. The SIM's own FREE or AFFECTED is in get_subscriber.
    """
    return {"data": await provider_history(line) or None}


async def provider_history(line: Line) -> list[ProviderStatus]:
    """The life of the profile, newest first. Waits for the network."""
    try:
        return await line.upstream.ocs.subscriber.get_sim_provider_status(line.sim_id)
    except OcsNotFound:  # Choice: a provider that does not know the profile has said nothing of it
        return []


SimStatus = Literal["ENABLED", "DISABLED", "Affected", "Free"]
SIM_FREED_WARNING = "A profile that was downloaded before cannot be downloaded again after this"


class SimStatusChange(LineRef):
    """What the SIM becomes."""

    status: Annotated[SimStatus, Field(description="ENABLED or Affected: in use. DISABLED or Free: in stock.")]


def is_freeing(params: SimStatusChange) -> bool:
    """Whether the SIM goes to stock."""
    return params.status in ("DISABLED", "Free")


async def name_sim_profile(_ctx: Ctx, params: SimStatusChange, line: Line) -> Challenge:
    """The SIM with its state here, and what its provider last said of the profile. Waits for the network."""
    now = line.row.get("sim", {}).get("status", "unknown")
    if not is_freeing(params):
        return Challenge(f"This will mark the SIM of the line {params.iccid}, which is {now} now, as in use.")
    rows = await provider_history(line)
    profile = (
        "nothing is known of it" if not rows else f"{rows[0].get('status', 'unknown')} since {rows[0].get('start', 'an unknown time')}"
    )
    loss = describe_loss("profile", params.iccid, sim=str(line.sim_id), sim_status=now, profile=profile)
    return Challenge(f"This will return the SIM of the line {params.iccid} to stock: {name_losses((loss,))}. {SIM_FREED_WARNING}.", (loss,))


class SimStatusChanged(TypedDict):
    """What was asked for."""

    status: SimStatus
    simId: int
    warning: NotRequired[str]


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/sim-status",
    spends=SpendKind.OPEN,
    irreversible=True,
    scope=Scope.ADMIN,
    confirm=True,
    upstream=True,
    moves=True,
    operator=True,
    access=own_line,
    challenge=name_sim_profile,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Return a SIM to stock",
            {"iccid": "8988303700000100286", "status": "DISABLED"},
            {"data": {"status": "DISABLED", "simId": 760112, "warning": SIM_FREED_WARNING}},
        )
    ],
)
async def change_sim_status(ctx: Ctx, params: SimStatusChange, line: Line) -> Data[SimStatusChanged]:
    """Take a SIM into use, or return it to stock, at platform level.

    A repair tool: DISABLED makes a downloaded profile undownloadable. modify_subscriber_status suspends a line instead.
    """
    freed = is_freeing(params)
    await line.upstream.ocs.subscriber.change_sim_status(line.sim_id, "Free" if freed else "Affected")
    note_line(ctx, line, sim_status="FREE" if freed else "AFFECTED")
    changed: SimStatusChanged = {"status": params.status, "simId": line.sim_id}
    if freed:
        changed["warning"] = SIM_FREED_WARNING
    return {"data": changed}


class TrafficRestrictions(LineRef):
    """What changes; the rest stays."""

    data: Annotated[
        bool | None, Field(validation_alias=AliasChoices("data", "dataAllowed", "data_allowed"), description="Mobile data.")
    ] = None
    moc: Annotated[bool | None, Field(validation_alias=AliasChoices("moc", "mocAllowed", "moc_allowed"), description="Outgoing calls.")] = (
        None
    )
    mtc: Annotated[bool | None, Field(validation_alias=AliasChoices("mtc", "mtcAllowed", "mtc_allowed"), description="Incoming calls.")] = (
        None
    )
    sms: Annotated[
        bool | None, Field(validation_alias=AliasChoices("sms", "smsMoAllowed", "sms_mo_allowed"), description="Outgoing SMS.")
    ] = None

    @model_validator(mode="after")
    def check(self) -> "TrafficRestrictions":
        """Raises ValueError when no flag would change."""
        if self.data is None and self.moc is None and self.mtc is None and self.sms is None:
            raise ValueError("give at least one of data, moc, mtc, sms, each true or false")
        return self


class Allowed(TypedDict):
    """What the line may do now. Incoming SMS are always allowed."""

    data: bool
    moc: bool
    mtc: bool
    sms: bool


class MergedRestrictions(NamedTuple):
    """The line, and all four flags as they are to be."""

    line: Line
    allowed: Allowed


async def merge_restrictions(ctx: Ctx, params: TrafficRestrictions) -> MergedRestrictions:
    """All four flags, which the upstream takes at once: a flag that is not given is read from the line."""
    line = await own_line(ctx, params)
    row = line.row
    found = {
        "data": (params.data, row.get("allowedData")),
        "moc": (params.moc, row.get("allowedMoc")),
        "mtc": (params.mtc, row.get("allowedMtc")),
        "sms": (params.sms, row.get("allowedMosms")),
    }
    flags = {name: given if given is not None else current for name, (given, current) in found.items()}
    unknown = [name for name, flag in flags.items() if flag is None]
    if unknown:
        raise BadRequest(
            f"The charging system does not say whether {', '.join(unknown)} is allowed now, so it cannot be kept; nothing was changed",
            param=unknown[0],
            hint="Name all four: data, moc, mtc, sms",
        )
    return MergedRestrictions(line, {name: bool(flag) for name, flag in flags.items()})  # pyright: ignore[reportArgumentType]  # the names are those of the answer


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/traffic-restrictions",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=merge_restrictions,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Data only",
            {"iccid": "8988303700000100286", "moc": False, "mtc": False, "sms": False},
            {"data": {"data": True, "moc": False, "mtc": False, "sms": False}},
        )
    ],
)
async def set_subscriber_traffic_restrictions(ctx: Ctx, params: TrafficRestrictions, merged: MergedRestrictions) -> Data[Allowed]:
    """Allow or forbid a line data, outgoing calls, incoming calls and outgoing SMS.

    Flags left out stay as they are. modify_subscriber_status stops everything at once.
    """
    line, allowed = merged
    await line.upstream.ocs.subscriber.set_traffic_restrictions(
        line.subscriber_id, data=allowed["data"], moc=allowed["moc"], mtc=allowed["mtc"], sms_mo=allowed["sms"]
    )
    note_line(
        ctx,
        line,
        data_allowed=int(allowed["data"]),
        calls_out_allowed=int(allowed["moc"]),
        calls_in_allowed=int(allowed["mtc"]),
        sms_out_allowed=int(allowed["sms"]),
    )
    if line.row.get("allowedData") is not allowed["data"]:
        note_change(ctx, line, "data", "on" if allowed["data"] else "off")
    return {"data": allowed}
