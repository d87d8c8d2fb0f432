"""Package templates, what packages are made from: listing and making them, and the fields that can be written."""

import re
from collections.abc import Mapping
from typing import Annotated, cast

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from clients.ocs.templates import THROTTLE_SPEEDS, Template, TemplateFields
from clients.ocs.wire_schema import keeps_unknown
from operations.deps import Ctx
from operations.upstream.connection import Upstream, connect_upstream, name_refused_field
from operations.upstream.paging import Data, FieldsQuery, paged_data
from operations.upstream.resellers import (
    DESTINATION_LISTS,
    SPONSOR_LIST,
    TEMPLATE_CACHE_KEY,
    ZONE_LIST,
    ResellerId,
    read_of_reseller,
    record_creator,
    require_listed,
    resolve_reseller,
    template_countries,
    template_owner,
    zone_countries,
)
from operations.vocabulary import UpstreamId, assigned_country
from registry.errors import NotFound, OcsError, OcsNotFound
from registry.operation import CamelInput, Example, FieldRule, Input, Once, Scope, SpendKind, operation
from storage.upstream_objects import note_recurrence, template_recurrences

THROTTLE_SPEEDS_TEXT = "128, 256, 384, 512, 1024, 3072, 5120, 7680, 10240, 20480, 51200 or 102400"
MONTHLY_PERIODICITY = 2
THRESHOLD_NUMBERS = range(1, 5)


def check_throttle_speed(value: int) -> int:
    """Raises ValueError unless the network can throttle to `value`, kbit/s."""
    if value not in THROTTLE_SPEEDS:
        raise ValueError(f"a throttled speed is one of {THROTTLE_SPEEDS_TEXT} kbit/s")
    return value


TemplateQuantity = Annotated[int, Field(ge=0, le=2**53 - 1)]
TemplateCount = Annotated[int, Field(ge=1, le=10_000)]
TemplateCost = Annotated[float, Field(ge=0, le=1_000_000_000)]
TemplateName = Annotated[str, Field(min_length=1, max_length=120, pattern=r"^[^\x00-\x1f\x7f-\x9f]+$")]
TemplateDays = Annotated[int, Field(ge=1, le=36_500)]
ThrottlePercent = Annotated[int, Field(ge=1, le=100)]
ThrottleSpeed = Annotated[int, Field(json_schema_extra={"enum": [*THROTTLE_SPEEDS]}), AfterValidator(check_throttle_speed)]


class TemplateLimits(CamelInput):
    """What a package holds and costs."""

    data_limit: Annotated[
        TemplateQuantity | None,
        Field(validation_alias=AliasChoices("dataLimit", "databyte", "dataByte", "data_byte"), description="Bytes."),
    ] = None
    moc_limit: Annotated[
        TemplateQuantity | None,
        Field(validation_alias=AliasChoices("mocLimit", "mocsecond", "mocSecond", "moc_second"), description="Calls made, seconds."),
    ] = None
    mtc_limit: Annotated[
        TemplateQuantity | None,
        Field(validation_alias=AliasChoices("mtcLimit", "mtcsecond", "mtcSecond", "mtc_second"), description="Calls received, seconds."),
    ] = None
    mo_sms_limit: Annotated[
        TemplateQuantity | None,
        Field(validation_alias=AliasChoices("moSmsLimit", "mosmsnumber", "moSms", "mo_sms"), description="SMS sent."),
    ] = None
    mt_sms_limit: Annotated[
        TemplateQuantity | None,
        Field(validation_alias=AliasChoices("mtSmsLimit", "mtsmsnumber", "mtSms", "mt_sms"), description="SMS received."),
    ] = None
    cost: Annotated[TemplateCost | None, Field(description="EUR, informative.")] = None
    destination_list_id: Annotated[
        UpstreamId | None,
        Field(validation_alias=AliasChoices("destinationListId", "destinationzoneid"), description="Calls to its prefixes only."),
    ] = None


class TemplateThrottling(CamelInput):
    """Speeds by share of the data limit that is used. Numbers with few values are ranges here: a Literal takes true for 1."""

    throttling_threshold1_perc: Annotated[ThrottlePercent | None, Field(description="1-100 % of dataLimit.")] = None
    throttling_threshold1_limit: Annotated[ThrottleSpeed | None, Field(description=f"kbit/s: {THROTTLE_SPEEDS_TEXT}.")] = None
    throttling_threshold2_perc: Annotated[ThrottlePercent | None, Field(description="1-100 %.")] = None
    throttling_threshold2_limit: Annotated[ThrottleSpeed | None, Field(description="kbit/s.")] = None
    throttling_threshold3_perc: Annotated[ThrottlePercent | None, Field(description="1-100 %.")] = None
    throttling_threshold3_limit: Annotated[ThrottleSpeed | None, Field(description="kbit/s.")] = None
    throttling_threshold4_perc: Annotated[ThrottlePercent | None, Field(description="1-100 %.")] = None
    throttling_threshold4_limit: Annotated[ThrottleSpeed | None, Field(description="kbit/s.")] = None
    throttling_error_action: Annotated[
        int | None, Field(ge=0, le=1, description="If slowing fails: 0 full speed, 1 block. Needed if active.")
    ] = None


class TemplateRecurrence(CamelInput):
    """How often a package comes again."""

    nb_occurrence: Annotated[TemplateCount | None, Field(description="Packages in all; monthly absent: endless.")] = None
    recurring_periodicity_type: Annotated[int | None, Field(ge=0, le=2, description="0 daily, 1 weekly, 2 monthly.")] = None
    recurring_periodicity_frequency: Annotated[TemplateCount | None, Field(description="Every so many periods.")] = None
    report_units_previous_package: Annotated[bool | None, Field(description="Carry unused units over.")] = None


CORE_FIELDS: Mapping[str, str] = {
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
THRESHOLD_FIELDS = tuple(f"throttlingThreshold{number}{part}" for number in THRESHOLD_NUMBERS for part in ("Perc", "Limit"))
THROTTLING_FIELDS = ("throttlingActive", *THRESHOLD_FIELDS, "throttlingErrorAction")
RECURRENCE_NEEDED = ("recurringPeriodicityType", "recurringPeriodicityFrequency", "reportUnitsPreviousPackage")
RECURRENCE_FIELDS = ("recurring", *RECURRENCE_NEEDED, "nbOccurrence")


def given_fields(params: Input, *without: str) -> dict[str, object]:
    """The fields of `params` but `without` that the caller wrote, by the wire's names; null stands only where it clears a limit."""
    fields = type(params).model_fields
    written = {name: cast(object, getattr(params, name)) for name in params.model_fields_set - {*without}}
    return {CORE_FIELDS.get(n, fields[n].alias or n): value for n, value in written.items() if value is not None or n in params.null_clears}


def merge_template_fields(*parts: Mapping[str, object]) -> TemplateFields:
    """The fields for the wire; later parts win."""
    merged: dict[str, object] = {}
    for part in parts:
        merged |= part
    return cast(TemplateFields, merged)


def throttling_fault(group: Mapping[str, object]) -> tuple[str, str] | None:
    """The field at fault and the rule that it breaks; None where none is broken."""
    for number in THRESHOLD_NUMBERS:
        percent, limit = f"throttlingThreshold{number}Perc", f"throttlingThreshold{number}Limit"
        if (group.get(percent) is None) != (group.get(limit) is None):
            absent, there = (percent, limit) if group.get(percent) is None else (limit, percent)
            return absent, f"missing; {there} is given, and a threshold is a percentage together with a speed"
    if not group.get("throttlingActive"):
        return None
    if group.get("throttlingErrorAction") is None:
        return "throttlingErrorAction", "missing; active throttling needs it: 0 keeps full speed when slowing fails, 1 blocks the package"
    if all(group.get(name) is None for name in THRESHOLD_FIELDS):
        # Choice: throttling without a threshold slows nothing, so it is taken for a mistake.
        return "throttlingThreshold1Perc", "missing; active throttling needs a threshold, such as 80 with throttlingThreshold1Limit 512"
    return None


def recurrence_fault(group: Mapping[str, object]) -> tuple[str, str] | None:
    """The field at fault and the rule that it breaks; None where none is broken."""
    if not group.get("recurring"):
        return None
    missing = [name for name in RECURRENCE_NEEDED if group.get(name) is None]
    if group.get("nbOccurrence") is None and group.get("recurringPeriodicityType") not in (None, MONTHLY_PERIODICITY):
        missing.append("nbOccurrence")
    if missing:
        return missing[0], f"missing; a recurring template needs {', '.join(missing)} (only a monthly one may go without nbOccurrence)"
    return None


@keeps_unknown
class TemplateRow(Template, total=False):
    """A package template."""

    templateId: Annotated[int, Field(description="What other operations call it by")]


class TemplateRef(CamelInput):
    """Which template."""

    template_id: Annotated[UpstreamId, Field(description="Id of list_package_templates.")]


def template_row(row: Template) -> TemplateRow:
    """The template with the id that other operations take."""
    return cast(TemplateRow, {"templateId": template_number(row), **row})


def template_number(row: Template) -> int:
    return row.get("prepaidpackagetemplateid", 0)


def changed_template(ctx: Ctx, upstream: Upstream, row: Template) -> TemplateRow:
    """The answer to a change; drops cached answers about templates, and keeps with the answer whether this one is recurring."""
    upstream.reads.forget(upstream.identity, TEMPLATE_CACHE_KEY)
    recurring = row.get("recurring")
    if recurring is not None:
        id = template_number(row)
        ctx.at_close(note_recurrence, template_id=id, recurring=bool(recurring), organisation=ctx.organisation, now=ctx.now)
    return template_row(row)


TEMPLATE_SELECTORS = ("template_id", "sponsor_id", "location_zone_id", "destination_list_id", "reseller_id")
TEMPLATE_SELECTOR_NAMES = {
    "template_id": "templateId",
    "sponsor_id": "sponsorId",
    "location_zone_id": "locationZoneId",
    "destination_list_id": "destinationListId",
}


class TemplateQuery(FieldsQuery):
    """Which templates; at most one selector."""

    template_id: Annotated[UpstreamId | None, Field(description="At most one of these five.")] = None
    sponsor_id: Annotated[UpstreamId | None, Field(description="Its sponsor.")] = None
    location_zone_id: Annotated[
        UpstreamId | None, Field(validation_alias=AliasChoices("locationZoneId", "zoneId", "zone_id"), description="In this zone.")
    ] = None
    destination_list_id: Annotated[UpstreamId | None, Field(description="To this list.")] = None
    reseller_id: ResellerId = None
    q: Annotated[str | None, Field(min_length=1, max_length=120, description="Part of a name.")] = None
    country: Annotated[
        str | None, Field(min_length=2, max_length=2, description="Works there: ISO 3166-1 alpha-2."), AfterValidator(assigned_country)
    ] = None
    min_days: Annotated[TemplateQuantity | None, Field(description="Or more.")] = None
    max_days: Annotated[TemplateQuantity | None, Field(description="Or fewer.")] = None
    min_data_bytes: Annotated[TemplateQuantity | None, Field(description="Or more.")] = None
    recurring: Annotated[bool | None, Field(description="Series.")] = None
    include_deleted: Annotated[bool, Field(description="Deleted too.")] = False

    @model_validator(mode="after")
    def check(self) -> "TemplateQuery":
        """Raises ValueError for more than one selector, since the upstream takes one."""
        if sum(getattr(self, name) is not None for name in TEMPLATE_SELECTORS) > 1:
            raise ValueError("give at most one of templateId, sponsorId, locationZoneId, destinationListId, resellerId")
        if self.q is not None and not self.q.strip():
            raise ValueError("q: got only blanks; it must hold a part of a name, or be left out")
        if self.min_days is not None and self.max_days is not None and self.min_days > self.max_days:
            raise FieldRule(
                f"minDays: {self.min_days} is above maxDays, {self.max_days}", param="minDays", hint="Send a minDays of at most maxDays"
            )
        return self


@operation(
    "GET",
    "/v1/package-templates",
    upstream=True,
    operator=True,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Which packages can lines get?",
            {"limit": 1, "fields": ["templateId", "prepaidpackagetemplatename", "databyte", "perioddays"]},
            {
                "data": [
                    {
                        "templateId": 55010,
                        "prepaidpackagetemplatename": "Nordic 1GB 30d",
                        "databyte": 1073741824,
                        "perioddays": 30,
                    }
                ]
            },
        )
    ],
    tool_defaults={
        "limit": 20,
        "fields": ["templateId", "prepaidpackagetemplatename", "rdbLocationZones", "databyte", "perioddays", "cost"],
    },
)
async def list_package_templates(ctx: Ctx, params: TemplateQuery) -> Data[list[TemplateRow]]:
    """List the package templates: limits, zone, days, cost.

    assign_package gives a line a package of one. Bytes, seconds, days, EUR.

    Throttling and recurrence are shown where the charging system lists them; the answers of a change always show them. So `recurring`
    goes by its list, else by what it answered when the template was made or changed here, else by the name: monthly, weekly, daily,
    day pass and the like.
    """
    upstream = await connect_upstream(ctx)
    await require_template_selector(upstream, params)
    rows = await read_selected_templates(upstream, params)
    selected = [row for row in rows if params.include_deleted or not row.get("deleted")]
    if params.template_id is not None and not selected:
        raise template_selector_not_found("templateId")
    found = [row for row in selected if fits_template_query(row, params)]
    if params.country is not None:
        countries = await zone_countries(upstream)
        found = [row for row in found if params.country in template_countries(row, countries)]
    if params.recurring is not None:
        known = await ctx.deps.store.read(template_recurrences)
        found = [row for row in found if is_recurring_template(row, known) is params.recurring]
    return paged_data(ctx, [template_row(row) for row in found], params, template_number)


def fits_template_query(row: Template, params: TemplateQuery) -> bool:
    """Whether name, days and data are those that were asked for. A template that does not say how long it runs fits no number of days."""
    days, data = row.get("perioddays") or 0, row.get("databyte") or 0
    return (
        (params.q is None or params.q.strip().casefold() in row.get("prepaidpackagetemplatename", "").casefold())
        and (params.min_days is None or days >= params.min_days)
        and (params.max_days is None or 0 < days <= params.max_days)
        and (params.min_data_bytes is None or data >= params.min_data_bytes)
    )


RECURRING_NAME = re.compile(
    r"\b(?:monthly|weekly|daily|yearly|recurring|subscription|(?:day|week|month) pass|(?:per|every|each) (?:day|week|month))\b",
    re.IGNORECASE,
)


def is_recurring_template(row: Template, known: Mapping[int, bool]) -> bool:
    """Whether it makes series: as it is listed, else as was answered here to a change (`known`), else as its name says.

    Choice: the charging system's list has been seen without it, and a name is better than nothing to go by.
    """
    told = row.get("recurring", known.get(template_number(row)))
    return bool(RECURRING_NAME.search(row.get("prepaidpackagetemplatename", ""))) if told is None else bool(told)


async def require_template_selector(upstream: Upstream, params: TemplateQuery) -> None:
    """On a shared token, raises NotFound unless what is named is the reseller's own. Templates are checked by their rows."""
    if not upstream.managed:
        return
    if params.sponsor_id is not None:
        await require_listed(upstream, SPONSOR_LIST, params.sponsor_id, "sponsorId")
    if params.location_zone_id is not None:
        await require_listed(upstream, ZONE_LIST, params.location_zone_id, "locationZoneId")
    if params.destination_list_id is not None:
        await require_listed(upstream, DESTINATION_LISTS, params.destination_list_id, "destinationListId")


async def read_selected_templates(upstream: Upstream, params: TemplateQuery) -> list[Template]:
    """The selected templates, a minute old at most; without a selector, those of the own reseller. Waits for the network."""
    given = {name: getattr(params, name) for name in TEMPLATE_SELECTOR_NAMES if getattr(params, name) is not None}
    reseller = None if given else await resolve_reseller(upstream, params.reseller_id)
    key = (upstream.identity, TEMPLATE_CACHE_KEY, "list", *given.items(), reseller)
    cached = upstream.reads.get(key, lambda: upstream.ocs.templates.list(**given, reseller_id=reseller))
    try:
        rows = await read_of_reseller(params.reseller_id, cached)
    except OcsNotFound:
        if given:
            raise template_selector_not_found(TEMPLATE_SELECTOR_NAMES[next(iter(given))]) from None
        raise
    own = await upstream.reseller_id() if upstream.managed else None
    return [row for row in rows if own in (None, template_owner(row))]


def template_selector_not_found(param: str) -> NotFound:
    """The same answer for unknown and foreign ones."""
    if param == "templateId":
        text = "Your account has no package template with this id"
        return NotFound(text, param=param, hint="list_package_templates without a selector names the ones you can use")
    return NotFound(f"Your reseller has nothing with this {param}", param=param, hint="Leave it out to list all templates")


TEMPLATE_DUPLICATE_CODE = 4


class NewTemplate(TemplateRecurrence, TemplateThrottling, TemplateLimits):
    """The template to make."""

    name: Annotated[
        TemplateName, Field(validation_alias=AliasChoices("name", "prepaidpackagetemplatename"), description="Unique; 1-120 characters.")
    ]
    location_zone_id: Annotated[
        UpstreamId, Field(validation_alias=AliasChoices("locationZoneId", "locationzoneid"), description="Id of list_location_zones.")
    ]
    validity_days: Annotated[
        TemplateDays,
        Field(validation_alias=AliasChoices("validityDays", "periodDays", "perioddays", "period_days"), description="Days from first use."),
    ]
    throttling_active: Annotated[bool, Field(description="Slow down by the thresholds.")] = False
    recurring: Annotated[bool, Field(description="Comes again.")] = False

    @model_validator(mode="after")
    def check(self) -> "NewTemplate":
        """Raises ValueError for a rule that throttling or recurrence breaks."""
        group = {"throttlingActive": self.throttling_active, "recurring": self.recurring, **given_fields(self)}
        fault = throttling_fault(group) or recurrence_fault(group)
        if fault is not None:
            raise ValueError(": ".join(fault))
        if not self.recurring and any(getattr(self, name) is not None for name in TemplateRecurrence.model_fields):
            raise ValueError("recurring is false, so the recurrence means nothing: send recurring: true, or leave the recurrence out")
        return self


async def require_template_parts(ctx: Ctx, params: NewTemplate) -> Upstream:
    """The connection. Raises NotFound unless zone and destination list are of the caller's reseller."""
    upstream = await connect_upstream(ctx)
    await require_listed(upstream, ZONE_LIST, params.location_zone_id, "locationZoneId")
    if params.destination_list_id is not None:
        await require_listed(upstream, DESTINATION_LISTS, params.destination_list_id, "destinationListId")
    await upstream.reseller_id()  # kept for the handler, which is to make one call
    return upstream


@operation(
    "POST",
    "/v1/package-templates",
    spends=SpendKind.OPEN,
    scope=Scope.WRITE,
    once=Once(shown=True),
    upstream=True,
    operator=True,
    status=201,
    access=require_template_parts,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "One gigabyte for thirty days in the Nordics",
            {"name": "Nordic 1GB", "locationZoneId": 2301, "validityDays": 30, "dataLimit": 1073741824, "cost": 4.5},
            {
                "data": {
                    "templateId": 55051,
                    "prepaidpackagetemplateid": 55051,
                    "prepaidpackagetemplatename": "Nordic 1GB",
                    "resellerid": 7001,
                    "locationzoneid": 2301,
                    "databyte": 1073741824,
                    "perioddays": 30,
                    "cost": 4.5,
                    "deleted": False,
                    "throttlingActive": False,
                    "recurring": False,
                }
            },
        )
    ],
)
async def create_package_template(ctx: Ctx, params: NewTemplate, upstream: Upstream) -> Data[TemplateRow]:
    """Make a package template; it cannot be deleted here.

    Absent limits: none of it. A recurring template needs its whole group.

    Throttling is one to four pairs of percent and speed. The reseller is always your own, the sponsor follows from the
    zone's network profile, and the template is not shown in the provider's own interface until it is released there.
    """
    defaults = {"throttlingActive": params.throttling_active, "recurring": params.recurring}
    fields = merge_template_fields(given_fields(params), defaults, {"resellerid": await upstream.reseller_id()})
    made = await name_refused_field(upstream.ocs.templates.create(fields), {TEMPLATE_DUPLICATE_CODE: "name"})
    record_creator(ctx, "template", template_number(made))
    return {"data": changed_template(ctx, upstream, made)}
