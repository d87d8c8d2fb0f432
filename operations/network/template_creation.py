"""Making a package template."""

from typing import Annotated

from pydantic import AliasChoices, Field, model_validator

from operations.deps import Ctx
from operations.network.references import require_destination_list, require_zone
from operations.network.template_fields import (
    Days,
    Limits,
    Recurrence,
    TemplateName,
    Throttling,
    given,
    recurrence_fault,
    sent,
    throttling_fault,
)
from operations.network.template_shapes import TemplateRow, changed, template_id
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import Data
from operations.services.network.reached import Upstream
from operations.services.network.refused_field import naming_field
from operations.services.network.upstream import reach
from registry.errors import NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, Once, operation
from storage.network.upstream_objects import add_upstream_object

DUPLICATE = 4


class NewTemplate(Recurrence, Throttling, Limits):
    """The template to make."""

    name: Annotated[
        TemplateName, Field(validation_alias=AliasChoices("name", "prepaidpackagetemplatename"), description="Unique; 1-120 characters.")
    ]
    location_zone_id: Annotated[
        UpstreamId, Field(validation_alias=AliasChoices("locationZoneId", "locationzoneid"), description="Id of list_location_zones.")
    ]
    validity_days: Annotated[
        Days,
        Field(validation_alias=AliasChoices("validityDays", "periodDays", "perioddays", "period_days"), description="Days from first use."),
    ]
    throttling_active: Annotated[bool, Field(description="Slow down by the thresholds.")] = False
    recurring: Annotated[bool, Field(description="Comes again.")] = False

    @model_validator(mode="after")
    def check(self) -> "NewTemplate":
        """The rules of the two groups."""
        group = {"throttlingActive": self.throttling_active, "recurring": self.recurring, **given(self)}
        fault = throttling_fault(group) or recurrence_fault(group)
        if fault is not None:
            raise ValueError(": ".join(fault))
        if not self.recurring and any(getattr(self, name) is not None for name in Recurrence.model_fields):
            raise ValueError("recurring is false, so the recurrence means nothing: send recurring: true, or leave the recurrence out")
        return self


async def parts_there(ctx: Ctx, params: NewTemplate) -> Upstream:
    """A zone, and where it is named a destination list, of the caller's reseller."""
    upstream = await reach(ctx)
    await require_zone(upstream, params.location_zone_id, "locationZoneId")
    if params.destination_list_id is not None:
        await require_destination_list(upstream, params.destination_list_id)
    await upstream.reseller_id()  # kept for the handler, which is to make one call
    return upstream


@operation(
    "POST",
    "/v1/package-templates",
    scope=Scope.WRITE,
    once=Once(shown=True),
    upstream=True,
    operator=True,
    status=201,
    access=parts_there,
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
    fields = sent(given(params), defaults, {"resellerid": await upstream.reseller_id()})
    made = await naming_field(upstream.ocs.templates.create(fields), {DUPLICATE: "name"})
    ctx.at_close(add_upstream_object, kind="template", id=template_id(made), organisation=ctx.organisation, now=ctx.now)
    return {"data": changed(upstream, made)}
