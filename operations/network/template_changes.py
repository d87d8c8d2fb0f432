"""Changing a package template: its core (name, zone, limits, days, cost), its throttling, its recurrence."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, NamedTuple

from pydantic import AliasChoices, Field, model_validator

from clients.ocs.templates import Template, TemplateFields
from operations.deps import Ctx
from operations.network.templates import (
    CORE_FIELDS,
    RECURRENCE_FIELDS,
    THROTTLING_FIELDS,
    TemplateDays,
    TemplateLimits,
    TemplateName,
    TemplateRecurrence,
    TemplateRef,
    TemplateRow,
    TemplateThrottling,
    changed_template,
    given_fields,
    merge_template_fields,
    recurrence_fault,
    throttling_fault,
)
from operations.upstream.connection import Upstream, connect_upstream, name_refused_field
from operations.upstream.paging import Data
from operations.upstream.resellers import (
    DESTINATION_LISTS,
    SPONSOR_LIST,
    ZONE_LIST,
    read_template,
    require_creator,
    require_listed,
    template_owner,
)
from operations.vocabulary import UpstreamId
from registry.challenge import Challenge, describe_loss, name_losses
from registry.errors import BadRequest, NotFound, OcsError
from registry.operation import Example, Scope, SpendKind, operation, shown_field_name


def present_fields(row: Template, names: tuple[str, ...]) -> dict[str, object]:
    """The fields of a group that a template shows; lists leave some groups out."""
    return {name: row[name] for name in names if name in row}


class MergedGroup(NamedTuple):
    """The whole group of fields as it is to be."""

    upstream: Upstream
    fields: TemplateFields
    before: Template
    moved: bool = False
    """Whether the zone of the template changes."""


async def own_template(ctx: Ctx, template_id: int) -> tuple[Upstream, Template]:
    """The connection, and the template as it is now. Raises NotFound; in managed mode also where another organisation made it."""
    upstream = await connect_upstream(ctx)
    row = await read_template(upstream, template_id, "templateId")
    await require_creator(ctx, upstream, "template", template_id, "templateId")
    return upstream, row


async def name_template(_ctx: Ctx, params: TemplateRef, merged: MergedGroup) -> Challenge:
    """The template, and each field that changes with its former value, as access has read it."""
    before: Mapping[str, object] = {**merged.before}
    sent: Mapping[str, object] = {**merged.fields}
    details: dict[str, str] = {}
    for name in type(params).model_fields:
        word = shown_field_name(name, type(params).model_fields[name])
        wire = CORE_FIELDS.get(name, word)
        if name in params.model_fields_set and wire in sent | before and sent.get(wire) != before.get(wire):
            details[word] = f"{shown_value(before.get(wire))} becomes {shown_value(sent.get(wire))}"
    loss = describe_loss("template", merged.before.get("prepaidpackagetemplatename") or str(params.template_id), **details)
    return Challenge(f"This will change the package template {params.template_id}: {name_losses((loss,))}.", (loss,))


def shown_value(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)


def refuse_template_fault(fault: tuple[str, str] | None, *, merged: bool) -> None:
    """Raises BadRequest for `fault`, a rule that the group breaks once it was completed by the present values (`merged`)."""
    if fault is None:
        return
    param, text = fault
    hint = None if merged else "The charging system does not show this group of the template, so it cannot be completed: send all of it"
    raise BadRequest(f"{param}: {text}", param=param, hint=hint)


CORE_DUPLICATE_CODE, CORE_IMPOSSIBLE_CODE = 4, 14
CORE_MANDATORY = {"name": "name", "location_zone_id": "locationZoneId", "validity_days": "validityDays"}


class TemplateCoreChange(TemplateLimits, TemplateRef):
    """What changes; null removes a limit, what is absent stays."""

    null_clears: ClassVar[frozenset[str]] = frozenset({*TemplateLimits.model_fields, "esim_sponsor"})

    name: Annotated[
        TemplateName | None, Field(validation_alias=AliasChoices("name", "prepaidpackagetemplatename"), description="Unique.")
    ] = None
    location_zone_id: Annotated[
        UpstreamId | None, Field(validation_alias=AliasChoices("locationZoneId", "locationzoneid"), description="New zone.")
    ] = None
    validity_days: Annotated[
        TemplateDays | None,
        Field(validation_alias=AliasChoices("validityDays", "periodDays", "perioddays", "period_days"), description="Days."),
    ] = None
    change_sponsor: Annotated[bool | None, Field(description="true if the new zone has another sponsor.")] = None
    esim_sponsor: Annotated[UpstreamId | None, Field(description="Sponsor of the eSIMs.")] = None

    @model_validator(mode="after")
    def check(self) -> "TemplateCoreChange":
        """Raises ValueError when no field would change. Null leaves name, zone and days as they are, since a template needs them."""
        if not given_fields(self, "template_id"):
            raise ValueError("give at least one field besides templateId: name, locationZoneId, validityDays, dataLimit, cost, ...")
        return self


async def merge_core(ctx: Ctx, params: TemplateCoreChange) -> MergedGroup:
    """The whole core, which the upstream replaces: what is not given is read from the template."""
    upstream, row = await own_template(ctx, params.template_id)
    reseller = template_owner(row) or await upstream.reseller_id()
    if params.location_zone_id is not None:
        await require_listed(upstream, ZONE_LIST, params.location_zone_id, "locationZoneId", reseller)
    if params.destination_list_id is not None:
        await require_listed(upstream, DESTINATION_LISTS, params.destination_list_id, "destinationListId")
    if params.esim_sponsor is not None:
        await require_listed(upstream, SPONSOR_LIST, params.esim_sponsor, "esimSponsor")
    core = present_fields(row, tuple(CORE_FIELDS.values()))
    changes = given_fields(params, "template_id")
    fields = merge_template_fields(core, changes, {"prepaidpackagetemplateid": params.template_id, "resellerid": reseller})
    missing = [name for name in CORE_MANDATORY if fields.get(CORE_FIELDS[name]) is None]
    if missing:
        raise BadRequest(
            f"The charging system does not show the template's {', '.join(missing)}, so the rest cannot be kept; nothing was changed",
            param=CORE_MANDATORY[missing[0]],
            hint=f"Send {', '.join(CORE_MANDATORY[name] for name in missing)} too",
        )
    return MergedGroup(upstream, fields, row, params.location_zone_id not in (None, row.get("locationzoneid")))


@operation(
    "PUT",
    "/v1/package-templates/{templateId}/core",
    spends=SpendKind.OPEN,
    scope=Scope.ADMIN,
    upstream=True,
    operator=True,
    confirm=True,
    access=merge_core,
    challenge=name_template,
    raises=[NotFound, OcsError],
    examples=[
        Example(
            "Two gigabytes instead of one",
            {"templateId": 55051, "name": "Nordic 2GB", "dataLimit": 2147483648},
            {
                "data": {
                    "templateId": 55051,
                    "prepaidpackagetemplateid": 55051,
                    "prepaidpackagetemplatename": "Nordic 2GB",
                    "databyte": 2147483648,
                    "perioddays": 30,
                }
            },
        )
    ],
)
async def modify_template_core(ctx: Ctx, params: TemplateCoreChange, merged: MergedGroup) -> Data[TemplateRow]:
    """Change a template's name, zone, limits, days or cost.

    Absent stays, null removes a limit; assigned packages stay as they are. Only templates you made.
    """
    try:
        row = await name_refused_field(merged.upstream.ocs.templates.modify_core(merged.fields), {CORE_DUPLICATE_CODE: "name"})
    except OcsError as error:
        if error.ocs_code == CORE_IMPOSSIBLE_CODE and merged.moved and not params.change_sponsor:
            error.param = "changeSponsor"
            error.hint = "The new zone may have another sponsor than the template: send changeSponsor: true to change it"
        raise
    return {"data": changed_template(ctx, merged.upstream, row)}


THROTTLING_EXAMPLE = {
    "throttlingActive": True,
    "throttlingThreshold1Perc": 80,
    "throttlingThreshold1Limit": 512,
    "throttlingErrorAction": 0,
}


class TemplateThrottlingChange(TemplateThrottling, TemplateRef):
    """What changes; null removes a threshold."""

    null_clears: ClassVar[frozenset[str]] = frozenset(TemplateThrottling.model_fields)

    throttling_active: Annotated[bool, Field(description="false: never slowed.")]


async def merge_throttling(ctx: Ctx, params: TemplateThrottlingChange) -> MergedGroup:
    """The whole group, which the upstream replaces: what is not given is read from the template, if lists show it."""
    upstream, row = await own_template(ctx, params.template_id)
    changes = given_fields(params, "template_id")
    group = present_fields(row, THROTTLING_FIELDS) | changes
    refuse_template_fault(throttling_fault(group), merged="throttlingActive" in row)
    return MergedGroup(upstream, merge_template_fields(group, {"prepaidpackagetemplateid": params.template_id}), row)


@operation(
    "PUT",
    "/v1/package-templates/{templateId}/throttling",
    spends=SpendKind.OPEN,
    scope=Scope.ADMIN,
    upstream=True,
    operator=True,
    confirm=True,
    access=merge_throttling,
    challenge=name_template,
    raises=[BadRequest, NotFound, OcsError],
    examples=[
        Example(
            "512 kbit/s from 80 percent on",
            {"templateId": 55051, **THROTTLING_EXAMPLE},
            {"data": {"templateId": 55051, "prepaidpackagetemplateid": 55051, **THROTTLING_EXAMPLE}},
        )
    ],
)
async def modify_template_throttling(ctx: Ctx, params: TemplateThrottlingChange, merged: MergedGroup) -> Data[TemplateRow]:
    """Change when a template's packages are slowed; existing packages follow.

    Send the whole group: one to four pairs of percent and speed. Only templates you made.

    Where the charging system shows the present group it is completed, and null removes a threshold. Thresholds 3 and 4 are
    documented for new templates only and go out only where they are given or already there.
    """
    row = await merged.upstream.ocs.templates.modify_throttling(merged.fields)
    return {"data": changed_template(ctx, merged.upstream, row)}


RECURRENCE_EXAMPLE = {
    "recurring": True,
    "nbOccurrence": 6,
    "recurringPeriodicityType": 2,
    "recurringPeriodicityFrequency": 1,
    "reportUnitsPreviousPackage": False,
}


class TemplateRecurrenceChange(TemplateRecurrence, TemplateRef):
    """What changes; the rest stays."""

    null_clears: ClassVar[frozenset[str]] = frozenset({"nb_occurrence"})

    recurring: Annotated[bool | None, Field(description="false ends its series. Absent: as it is, else true.")] = None

    @model_validator(mode="after")
    def check(self) -> "TemplateRecurrenceChange":
        """Raises ValueError for a recurrence without recurring."""
        if self.recurring is False and any(getattr(self, name) is not None for name in TemplateRecurrence.model_fields):
            raise ValueError("recurring is false, so the recurrence means nothing: send recurring: true, or leave the recurrence out")
        return self


async def merge_recurrence(ctx: Ctx, params: TemplateRecurrenceChange) -> MergedGroup:
    """The whole group, which the upstream replaces: what is not given is read from the template, if lists show it."""
    upstream, row = await own_template(ctx, params.template_id)
    if params.recurring is False:
        return MergedGroup(upstream, merge_template_fields({"prepaidpackagetemplateid": params.template_id, "recurring": False}), row)
    changes = given_fields(params, "template_id")
    group: dict[str, object] = present_fields(row, RECURRENCE_FIELDS) | changes
    if group.get("recurring") is None:
        group["recurring"] = True
    if not group["recurring"] and set(changes) - {"recurring"}:
        raise BadRequest(
            "recurring: the template is not recurring now, so the recurrence means nothing",
            param="recurring",
            hint="Send recurring: true with the whole group",
        )
    refuse_template_fault(recurrence_fault(group), merged="recurring" in row)
    return MergedGroup(upstream, merge_template_fields(group, {"prepaidpackagetemplateid": params.template_id}), row)


@operation(
    "PUT",
    "/v1/package-templates/{templateId}/recurring",
    spends=SpendKind.OPEN,
    scope=Scope.ADMIN,
    upstream=True,
    operator=True,
    confirm=True,
    access=merge_recurrence,
    challenge=name_template,
    raises=[BadRequest, NotFound, OcsError],
    examples=[
        Example(
            "Every month, six times",
            {"templateId": 55051, **RECURRENCE_EXAMPLE},
            {"data": {"templateId": 55051, "prepaidpackagetemplateid": 55051, **RECURRENCE_EXAMPLE}},
        )
    ],
)
async def modify_template_recurring(ctx: Ctx, params: TemplateRecurrenceChange, merged: MergedGroup) -> Data[TemplateRow]:
    """Change how often a template's packages come again, or stop it.

    Send the whole group. Running series keep their rhythm; false ends them. Only templates you made.

    Where the charging system shows the present group it is completed.
    """
    row = await merged.upstream.ocs.templates.modify_recurring(merged.fields)
    return {"data": changed_template(ctx, merged.upstream, row)}
