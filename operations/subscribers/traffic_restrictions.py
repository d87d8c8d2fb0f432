"""What a line may do: data, calls out, calls in, messages out."""

from typing import Annotated, NamedTuple

from pydantic import AliasChoices, Field, model_validator
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.network.lines import Line, LineRef, own_line
from operations.services.network.passing import Data
from registry.errors import BadRequest, EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation


class Restrictions(LineRef):
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
    def check(self) -> "Restrictions":
        """Something has to change."""
        if self.data is None and self.moc is None and self.mtc is None and self.sms is None:
            raise ValueError("give at least one of data, moc, mtc, sms, each true or false")
        return self


class Allowed(TypedDict):
    """What the line may do now. Incoming SMS are always allowed."""

    data: bool
    moc: bool
    mtc: bool
    sms: bool


class Merged(NamedTuple):
    """The line, and all four flags as they are to be."""

    line: Line
    allowed: Allowed


async def merge(ctx: Ctx, params: Restrictions) -> Merged:
    """The upstream takes all four flags at once: what is not named is read from the line."""
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
    return Merged(line, {name: bool(flag) for name, flag in flags.items()})  # pyright: ignore[reportArgumentType]  # the names are those of the answer


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/traffic-restrictions",
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=merge,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Data only",
            {"iccid": "8988303700000100286", "moc": False, "mtc": False, "sms": False},
            {"data": {"data": True, "moc": False, "mtc": False, "sms": False}},
        )
    ],
)
async def set_subscriber_traffic_restrictions(ctx: Ctx, params: Restrictions, merged: Merged) -> Data[Allowed]:
    """Allow or forbid a line data, outgoing calls, incoming calls and outgoing SMS.

    Flags left out stay as they are. modify_subscriber_status stops everything at once.
    """
    line, allowed = merged
    await line.upstream.ocs.subscriber.set_traffic_restrictions(
        line.subscriber_id, data=allowed["data"], moc=allowed["moc"], mtc=allowed["mtc"], sms_mo=allowed["sms"]
    )
    return {"data": allowed}
