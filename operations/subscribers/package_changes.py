"""What a package of a line holds, and whether it may be used."""

from typing import Annotated, Literal, NotRequired, Self, TypeAlias, cast

from pydantic import AliasChoices, BeforeValidator, Field, model_validator

from clients.ocs.wire.package import PackageLimits
from operations.deps import Ctx
from operations.services.network.package_window import MOST
from operations.services.network.passing import Data
from operations.subscribers.own_package import Comment, OwnPackage, PackageDone, PackageRef, done, own_package
from registry.errors import BadRequest, EndOfLife, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation

Units: TypeAlias = Annotated[int, Field(ge=0, le=MOST)]
SEND_ONE = "Send at least one of dataLimit, mocLimit, mtcLimit, moSmsLimit, mtSmsLimit"


def unwrapped(values: object) -> object:
    """The members of `limits` as if they stood beside it: taken, and not shown, since the wrapper says nothing more."""
    if not isinstance(values, dict) or "limits" not in values:
        return cast(object, values)
    given = dict(cast(dict[str, object], values))
    inner = given.pop("limits")
    if not isinstance(inner, dict):
        raise BadRequest("limits: it must be an object", param="limits", hint=SEND_ONE)
    limits = cast(dict[str, object], inner)
    twice = sorted(limits.keys() & given.keys())
    if twice:
        raise BadRequest(f"limits.{twice[0][:40]}: given twice, it stands beside limits too", param="limits", hint="Send it once")
    return given | limits


class LimitsChange(PackageRef):
    """What a package holds from now on; what is absent stays."""

    data_limit: Annotated[
        Units | None, Field(validation_alias=AliasChoices("dataLimit", "dataByte", "data_byte"), description="Bytes, used ones included.")
    ] = None
    moc_limit: Annotated[
        Units | None, Field(validation_alias=AliasChoices("mocLimit", "mocSecond", "moc_second"), description="Calls made, seconds.")
    ] = None
    mtc_limit: Annotated[
        Units | None, Field(validation_alias=AliasChoices("mtcLimit", "mtcSecond", "mtc_second"), description="Calls received, seconds.")
    ] = None
    mo_sms_limit: Annotated[
        Units | None, Field(validation_alias=AliasChoices("moSmsLimit", "moSms", "mo_sms"), description="SMS sent.")
    ] = None
    mt_sms_limit: Annotated[
        Units | None, Field(validation_alias=AliasChoices("mtSmsLimit", "mtSms", "mt_sms"), description="SMS received.")
    ] = None
    comment: Annotated[Comment | None, Field(description="Kept in its history.")] = None

    @model_validator(mode="before")
    @classmethod
    def _unwrapped(cls, values: object) -> object:
        return unwrapped(values)

    @model_validator(mode="after")
    def _something(self) -> Self:
        if all(limit is None for limit in self.limits.values()):
            raise BadRequest("dataLimit: missing, and so is every other limit", param="dataLimit", hint=SEND_ONE)
        return self

    @property
    def limits(self) -> PackageLimits:
        """In the wire's words; None leaves one as it is."""
        return {
            "dataByte": self.data_limit,
            "mocSecond": self.moc_limit,
            "mtcSecond": self.mtc_limit,
            "moSms": self.mo_sms_limit,
            "mtSms": self.mt_sms_limit,
        }


class LimitsChanged(PackageDone):
    """The limits that were changed."""

    dataLimit: NotRequired[Annotated[int, Field(description="Bytes")]]
    mocLimit: NotRequired[Annotated[int, Field(description="Calls made, seconds")]]
    mtcLimit: NotRequired[Annotated[int, Field(description="Calls received, seconds")]]
    moSmsLimit: NotRequired[Annotated[int, Field(description="SMS sent")]]
    mtSmsLimit: NotRequired[Annotated[int, Field(description="SMS received")]]
    comment: NotRequired[str]


def canonical(value: object) -> object:
    """Resume and pause are other words for the two."""
    return {"resume": "ACTIVE", "pause": "INACTIVE"}.get(value, value) if isinstance(value, str) else value


class PackageSwitch(PackageRef):
    """Whether a package may be used."""

    status: Annotated[
        Literal["ACTIVE", "INACTIVE"],
        BeforeValidator(canonical),
        Field(validation_alias=AliasChoices("status", "action"), description="INACTIVE pauses, ACTIVE resumes."),
    ]


class PackageSwitched(PackageDone):
    """Whether it may be used now."""

    status: Literal["ACTIVE", "INACTIVE"]


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/packages/{packageId}/limits",
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=own_package,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Two gibibytes in all",
            {"iccid": "8988303700000100286", "packageId": 3300871, "dataLimit": 2147483648},
            {"data": {"ok": True, "iccid": "8988303700000100286", "packageId": 3300871, "dataLimit": 2147483648}},
        )
    ],
)
async def modify_package_limits(ctx: Ctx, params: LimitsChange, held: OwnPackage) -> Data[LimitsChanged]:
    """Set how much a package holds in all; limits not named stay as they are.

    New totals, not additions.

    list_subscriber_packages shows the present ones (pckdatabyte and others); the template stays as it is.
    The limits may also stand in an object `limits`, under these names or the charging system's (dataByte, mocSecond, mtcSecond,
    moSms, mtSms). null means the same as absent. A limit below what is used already ends that use.
    """
    await held.line.upstream.ocs.packages.modify_limits(held.id, params.limits, comment=params.comment)
    given = params.model_dump(by_alias=True, exclude_none=True, exclude={"iccid", "package_id"})
    return {"data": cast(LimitsChanged, {**done(held), **given})}


@operation(
    "PUT",
    "/v1/subscribers/{iccid}/packages/{packageId}/status",
    scope=Scope.WRITE,
    upstream=True,
    operator=True,
    access=own_package,
    raises=[NotFound, EndOfLife, OcsError],
    examples=[
        Example(
            "Pause a package",
            {"iccid": "8988303700000100286", "packageId": 3300871, "status": "INACTIVE"},
            {"data": {"ok": True, "iccid": "8988303700000100286", "packageId": 3300871, "status": "INACTIVE"}},
        )
    ],
)
async def modify_package_status(ctx: Ctx, params: PackageSwitch, held: OwnPackage) -> Data[PackageSwitched]:
    """Pause or resume one package.

    Paused, it keeps its data and its end date. modify_subscriber_status pauses the whole line.

    `action` with resume or pause is taken as well.
    """
    await held.line.upstream.ocs.packages.modify_status(held.id, active=params.status == "ACTIVE")
    return {"data": {**done(held), "status": params.status}}
