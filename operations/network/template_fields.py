"""What can be written on a package template: its core, its throttling, its recurrence; and how the wire calls it."""

from collections.abc import Mapping
from typing import Annotated, cast

from pydantic import AfterValidator, AliasChoices, Field

from clients.ocs.wire.template import Template, TemplateFields
from operations.services.network.accounts import UpstreamId
from registry.model import CamelInput, Input

SPEEDS = (128, 256, 384, 512, 1024, 3072, 5120, 7680, 10240, 20480, 51200, 102400)
SPOKEN_SPEEDS = "128, 256, 384, 512, 1024, 3072, 5120, 7680, 10240, 20480, 51200 or 102400"
MONTHLY = 2
NUMBERS = range(1, 5)


def known_speed(value: int) -> int:
    """The speeds that the network can throttle to."""
    if value not in SPEEDS:
        raise ValueError(f"a throttled speed is one of {SPOKEN_SPEEDS} kbit/s")
    return value


Quantity = Annotated[int, Field(ge=0, le=2**53 - 1)]
Count = Annotated[int, Field(ge=1, le=10_000)]
Cost = Annotated[float, Field(ge=0, le=1_000_000_000)]
TemplateName = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
Days = Annotated[int, Field(ge=1, le=36_500)]
Percent = Annotated[int, Field(ge=1, le=100)]
Speed = Annotated[int, Field(json_schema_extra={"enum": [*SPEEDS]}), AfterValidator(known_speed)]


class Limits(CamelInput):
    """What a package holds and costs."""

    data_limit: Annotated[
        Quantity | None, Field(validation_alias=AliasChoices("dataLimit", "databyte", "dataByte", "data_byte"), description="Bytes.")
    ] = None
    moc_limit: Annotated[
        Quantity | None,
        Field(validation_alias=AliasChoices("mocLimit", "mocsecond", "mocSecond", "moc_second"), description="Calls made, seconds."),
    ] = None
    mtc_limit: Annotated[
        Quantity | None,
        Field(validation_alias=AliasChoices("mtcLimit", "mtcsecond", "mtcSecond", "mtc_second"), description="Calls received, seconds."),
    ] = None
    mo_sms_limit: Annotated[
        Quantity | None, Field(validation_alias=AliasChoices("moSmsLimit", "mosmsnumber", "moSms", "mo_sms"), description="SMS sent.")
    ] = None
    mt_sms_limit: Annotated[
        Quantity | None, Field(validation_alias=AliasChoices("mtSmsLimit", "mtsmsnumber", "mtSms", "mt_sms"), description="SMS received.")
    ] = None
    cost: Annotated[Cost | None, Field(description="EUR, informative.")] = None
    destination_list_id: Annotated[
        UpstreamId | None,
        Field(validation_alias=AliasChoices("destinationListId", "destinationzoneid"), description="Calls to its prefixes only."),
    ] = None


class Throttling(CamelInput):
    """Speeds by share of the data limit that is used. Numbers with few values are ranges here: a Literal takes true for 1."""

    throttling_threshold1_perc: Annotated[Percent | None, Field(description="1-100 % of dataLimit.")] = None
    throttling_threshold1_limit: Annotated[Speed | None, Field(description=f"kbit/s: {SPOKEN_SPEEDS}.")] = None
    throttling_threshold2_perc: Annotated[Percent | None, Field(description="1-100 %.")] = None
    throttling_threshold2_limit: Annotated[Speed | None, Field(description="kbit/s.")] = None
    throttling_threshold3_perc: Annotated[Percent | None, Field(description="1-100 %.")] = None
    throttling_threshold3_limit: Annotated[Speed | None, Field(description="kbit/s.")] = None
    throttling_threshold4_perc: Annotated[Percent | None, Field(description="1-100 %.")] = None
    throttling_threshold4_limit: Annotated[Speed | None, Field(description="kbit/s.")] = None
    throttling_error_action: Annotated[
        int | None, Field(ge=0, le=1, description="If slowing fails: 0 full speed, 1 block. Needed if active.")
    ] = None


class Recurrence(CamelInput):
    """How often a package comes again."""

    nb_occurrence: Annotated[Count | None, Field(description="Packages in all; monthly absent: endless.")] = None
    recurring_periodicity_type: Annotated[int | None, Field(ge=0, le=2, description="0 daily, 1 weekly, 2 monthly.")] = None
    recurring_periodicity_frequency: Annotated[Count | None, Field(description="Every so many periods.")] = None
    report_units_previous_package: Annotated[bool | None, Field(description="Carry unused units over.")] = None


CORE: Mapping[str, str] = {
    "name": "prepaidpackagetemplatename",
    "location_zone_id": "locationzoneid",
    "validity_days": "perioddays",
    "data_limit": "databyte",
    "moc_limit": "mocsecond",
    "mtc_limit": "mtcsecond",
    "mo_sms_limit": "mosmsnumber",
    "mt_sms_limit": "mtsmsnumber",
    "cost": "cost",
    "destination_list_id": "destinationzoneid",
    "esim_sponsor": "esimSponsor",
}
THROTTLES = tuple(f"throttlingThreshold{number}{part}" for number in NUMBERS for part in ("Perc", "Limit"))
THROTTLING = ("throttlingActive", *THROTTLES, "throttlingErrorAction")
NEEDED = ("recurringPeriodicityType", "recurringPeriodicityFrequency", "reportUnitsPreviousPackage")
RECURRENCE = ("recurring", *NEEDED, "nbOccurrence")


def given(params: Input) -> dict[str, object]:
    """The fields of `params` that the caller wrote, by the wire's names; null stands where it clears a limit, else it is absent."""
    fields = type(params).model_fields
    written = {name: cast(object, getattr(params, name)) for name in params.model_fields_set}
    return {CORE.get(n, fields[n].alias or n): value for n, value in written.items() if value is not None or n in params.null_clears}


def present(row: Template, names: tuple[str, ...]) -> dict[str, object]:
    """What a template shows of a group; lists leave some groups out."""
    return {name: row[name] for name in names if name in row}


def sent(*parts: Mapping[str, object]) -> TemplateFields:
    """What goes to the wire; later parts win."""
    merged: dict[str, object] = {}
    for part in parts:
        merged |= part
    return cast(TemplateFields, merged)


def throttling_fault(group: Mapping[str, object]) -> tuple[str, str] | None:
    """The member at fault and the rule it breaks."""
    for number in NUMBERS:
        percent, limit = f"throttlingThreshold{number}Perc", f"throttlingThreshold{number}Limit"
        if (group.get(percent) is None) != (group.get(limit) is None):
            absent, there = (percent, limit) if group.get(percent) is None else (limit, percent)
            return absent, f"missing; {there} is given, and a threshold is a percentage together with a speed"
    if not group.get("throttlingActive"):
        return None
    if group.get("throttlingErrorAction") is None:
        return "throttlingErrorAction", "missing; active throttling needs it: 0 keeps full speed when slowing fails, 1 blocks the package"
    if all(group.get(name) is None for name in THROTTLES):
        # Choice: throttling without a threshold slows nothing, so it is taken for a mistake.
        return "throttlingThreshold1Perc", "missing; active throttling needs a threshold, such as 80 with throttlingThreshold1Limit 512"
    return None


def recurrence_fault(group: Mapping[str, object]) -> tuple[str, str] | None:
    """The member at fault and the rule it breaks."""
    if not group.get("recurring"):
        return None
    missing = [name for name in NEEDED if group.get(name) is None]
    if group.get("nbOccurrence") is None and group.get("recurringPeriodicityType") not in (None, MONTHLY):
        missing.append("nbOccurrence")
    if missing:
        return missing[0], f"missing; a recurring template needs {', '.join(missing)} (only a monthly one may go without nbOccurrence)"
    return None
