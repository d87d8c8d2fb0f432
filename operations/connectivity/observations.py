"""What the network bridge saw: attachments, places, package usage, profile states."""

from typing import Annotated, NotRequired

import orjson
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.times import UnixTime
from operations.vocabulary import Mcc, Mnc, network_country, zero_padded
from registry import validation_errors
from registry.errors import BadRequest
from registry.operation import Auth, Example, Input, Scope, SpendKind, operation
from storage.engine.sql import Connection
from storage.sightings import Sighting, observe_line

BRIDGE_EVENT_TYPES = frozenset({"network.attach", "location.update", "package.usage", "esim.status"})


class Observation(Input):
    """One network event. Members that a newer bridge adds are skipped, as an unknown `bridge_type` is."""

    model_config = ConfigDict(extra="ignore")

    bridge_type: Annotated[
        str, Field(min_length=1, max_length=64, description="network.attach, location.update, package.usage or esim.status.")
    ]
    iccid: Annotated[str | None, Field(max_length=64, description="The SIM it is about.")] = None
    imsi: Annotated[str | None, Field(max_length=64, description="Accepted and neither used nor kept.")] = None
    occurred_at: UnixTime | None = None
    data: Annotated[
        dict[str, JsonValue],
        Field(description="mcc, mnc and country of a place; used_bytes of a package so far; status of a profile. Others are not kept."),
    ] = Field(default_factory=dict)


class ObservedData(BaseModel):
    """The members of `data` that mean something."""

    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)

    mcc: Annotated[Mcc | None, zero_padded(3), Field(description="Mobile country code, 3 digits.")] = None
    mnc: Annotated[Mnc | None, zero_padded(2), Field(description="Mobile network code, 2 or 3 digits.")] = None
    country: Annotated[str | None, Field(pattern=r"^[A-Z]{2}$", description="ISO 3166-1 alpha-2, when the codes do not tell.")] = None
    used_bytes: Annotated[int | None, Field(ge=0, le=2**53 - 1, description="Bytes used of the package so far.")] = None
    status: Annotated[str | None, Field(max_length=64, description="State of the profile.")] = None


class Observed(TypedDict):
    """`ignored`: the type is not known here, or no intent owns the ICCID; otherwise the intent it was recorded against."""

    ignored: bool
    intent: NotRequired[str]


@operation(
    "POST",
    "/v1/connectivity/events/observe",
    spends=SpendKind.NOTHING,
    scope=Scope.NONE,
    auth=Auth.INTERNAL,
    title="Observe network event",
    examples=[
        Example(
            "A SIM joined a network in France",
            {"bridge_type": "network.attach", "iccid": "8988303700000100286", "data": {"mcc": "208", "mnc": "01"}},
            {"ignored": False, "intent": "cni_01k0a8w7zv6q4k3m2n1p0r9s8t"},
        ),
        Example("A type we do not know", {"bridge_type": "weather.report"}, {"ignored": True}),
    ],
)
async def observe_connectivity_event(ctx: Ctx, params: Observation) -> Observed:
    """Record a network event against the intent that owns the ICCID.

    Called by the bridge with the internal key. An unknown `bridge_type` or ICCID is ignored with 200.

    The first event of an intent that names a country emits `esim.first_attach`. `used_bytes` of package.usage is the total so far: it
    moves the intent's usage up, never down, and crosses its thresholds. What happened before a live eSIM was drawn is ignored; what is
    told while it is being drawn is kept for its intent, and answered `ignored` until then.
    """
    if params.bridge_type not in BRIDGE_EVENT_TYPES or params.iccid is None:
        ignored: Observed = {"ignored": True}
        return await ctx.settle(ignored)
    seen = read_sighting(params, params.iccid, ctx.now)

    def record(connection: Connection) -> Observed:
        """Stores the sighting with its intent; ignored where no intent owns the ICCID."""
        intent = observe_line(connection, seen=seen, now=ctx.now, ids=ctx.deps.ids)
        return {"ignored": True} if intent is None else {"ignored": False, "intent": intent}

    answer = await ctx.settle_result(record)
    ctx.deps.wake_worker()
    return answer


def read_sighting(params: Observation, iccid: str, now: float) -> Sighting:
    """The part of an observation that is stored, and its meaning. Raises BadRequest. `now`: Unix seconds."""
    try:
        data = ObservedData.model_validate(params.data)
    except ValidationError as error:
        refusal = validation_errors.refuse_input(ObservedData, error)
        raise BadRequest(f"data.{refusal.message}", param=f"data.{refusal.param}", hint=refusal.hint) from None
    # The codes come first: a bridge's own idea of the country fills in where they span several.
    country = (network_country(data.mcc, data.mnc) if data.mcc else None) or data.country
    used = data.used_bytes if params.bridge_type == "package.usage" else None
    at = now if params.occurred_at is None else params.occurred_at
    stored = orjson.dumps(data.model_dump(exclude_none=True)).decode()
    return Sighting(params.bridge_type, iccid, data.mcc, data.mnc, stored, at, country, used)
