"""Changing the core of a package template: name, zone, limits, days, cost."""

from typing import Annotated, ClassVar, NamedTuple

from pydantic import AliasChoices, Field, model_validator

from clients.ocs.wire.template import TemplateFields
from operations.deps import Ctx
from operations.network.references import require_destination_list, require_sponsor, require_zone
from operations.network.template_fields import CORE, Days, Limits, TemplateName, given, present, sent
from operations.network.template_shapes import TemplateRef, TemplateRow, changed, own_template, owner_of
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import Data
from operations.services.network.reached import Upstream
from operations.services.network.refused_field import naming_field
from registry.errors import BadRequest, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation

DUPLICATE, IMPOSSIBLE = 4, 14
MANDATORY = {"name": "name", "location_zone_id": "locationZoneId", "validity_days": "validityDays"}


class CoreChange(Limits, TemplateRef):
    """What changes; null removes a limit, what is absent stays."""

    null_clears: ClassVar[frozenset[str]] = frozenset({*Limits.model_fields, "esim_sponsor"})

    name: Annotated[
        TemplateName | None, Field(validation_alias=AliasChoices("name", "prepaidpackagetemplatename"), description="Unique.")
    ] = None
    location_zone_id: Annotated[
        UpstreamId | None, Field(validation_alias=AliasChoices("locationZoneId", "locationzoneid"), description="New zone.")
    ] = None
    validity_days: Annotated[
        Days | None, Field(validation_alias=AliasChoices("validityDays", "periodDays", "perioddays", "period_days"), description="Days.")
    ] = None
    change_sponsor: Annotated[bool | None, Field(description="true if the new zone has another sponsor.")] = None
    esim_sponsor: Annotated[UpstreamId | None, Field(description="Sponsor of the eSIMs.")] = None

    @model_validator(mode="after")
    def check(self) -> "CoreChange":
        """Something has to change. A template keeps a name, a zone and a duration: null leaves them as they are."""
        if len(given(self)) == 1:
            raise ValueError("give at least one field besides templateId: name, locationZoneId, validityDays, dataLimit, cost, ...")
        return self


class Merged(NamedTuple):
    """The whole core as it is to be."""

    upstream: Upstream
    fields: TemplateFields
    moved: bool
    """Whether the zone changes."""


async def merge(ctx: Ctx, params: CoreChange) -> Merged:
    """The upstream replaces the whole core, so what is not given is read from the template."""
    upstream, id, row = await own_template(ctx, params.template_id)
    reseller = owner_of(row) or await upstream.reseller_id()
    if params.location_zone_id is not None:
        await require_zone(upstream, params.location_zone_id, "locationZoneId", reseller)
    if params.destination_list_id is not None:
        await require_destination_list(upstream, params.destination_list_id)
    if params.esim_sponsor is not None:
        await require_sponsor(upstream, params.esim_sponsor, "esimSponsor")
    core = present(row, tuple(CORE.values()))
    changes = given(params)
    changes.pop("templateId")
    fields = sent(core, changes, {"prepaidpackagetemplateid": id, "resellerid": reseller})
    missing = [name for name in MANDATORY if fields.get(CORE[name]) is None]
    if missing:
        raise BadRequest(
            f"The charging system does not show the template's {', '.join(missing)}, so the rest cannot be kept; nothing was changed",
            param=MANDATORY[missing[0]],
            hint=f"Send {', '.join(MANDATORY[name] for name in missing)} too",
        )
    return Merged(upstream, fields, params.location_zone_id not in (None, row.get("locationzoneid")))


@operation(
    "PUT",
    "/v1/package-templates/{templateId}/core",
    scope=Scope.ADMIN,
    upstream=True,
    operator=True,
    confirm=True,
    access=merge,
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
async def modify_template_core(ctx: Ctx, params: CoreChange, merged: Merged) -> Data[TemplateRow]:
    """Change a template's name, zone, limits, days or cost.

    Absent stays, null removes a limit; assigned packages stay as they are. Only templates you made.
    """
    try:
        row = await naming_field(merged.upstream.ocs.templates.modify_core(merged.fields), {DUPLICATE: "name"})
    except OcsError as error:
        if error.ocs_code == IMPOSSIBLE and merged.moved and not params.change_sponsor:
            error.param = "changeSponsor"
            error.hint = "The new zone may have another sponsor than the template: send changeSponsor: true to change it"
        raise
    return {"data": changed(merged.upstream, row)}
