"""Changing when the packages of a template are slowed down."""

from typing import Annotated, ClassVar

from pydantic import Field

from operations.deps import Ctx
from operations.network.template_fields import THROTTLING, Throttling, given, present, sent, throttling_fault
from operations.network.template_shapes import Merged, TemplateRef, TemplateRow, changed, own_template, refuse
from operations.services.network.passing import Data
from registry.errors import BadRequest, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation


class ThrottlingChange(Throttling, TemplateRef):
    """What changes; null removes a threshold."""

    null_clears: ClassVar[frozenset[str]] = frozenset(Throttling.model_fields)

    throttling_active: Annotated[bool, Field(description="false: never slowed.")]


async def merge(ctx: Ctx, params: ThrottlingChange) -> Merged:
    """The upstream replaces the group, so what is not given is read from the template, where lists show it."""
    upstream, id, row = await own_template(ctx, params.template_id)
    changes = given(params)
    changes.pop("templateId")
    group = present(row, THROTTLING) | changes
    refuse(throttling_fault(group), merged="throttlingActive" in row)
    return Merged(upstream, sent(group, {"prepaidpackagetemplateid": id}))


@operation(
    "PUT",
    "/v1/package-templates/{templateId}/throttling",
    scope=Scope.ADMIN,
    upstream=True,
    operator=True,
    confirm=True,
    access=merge,
    raises=[BadRequest, NotFound, OcsError],
    examples=[
        Example(
            "512 kbit/s from 80 percent on",
            {
                "templateId": 55051,
                "throttlingActive": True,
                "throttlingThreshold1Perc": 80,
                "throttlingThreshold1Limit": 512,
                "throttlingErrorAction": 0,
            },
            {
                "data": {
                    "templateId": 55051,
                    "prepaidpackagetemplateid": 55051,
                    "throttlingActive": True,
                    "throttlingThreshold1Perc": 80,
                    "throttlingThreshold1Limit": 512,
                    "throttlingErrorAction": 0,
                }
            },
        )
    ],
)
async def modify_template_throttling(ctx: Ctx, params: ThrottlingChange, merged: Merged) -> Data[TemplateRow]:
    """Change when a template's packages are slowed; existing packages follow.

    Send the whole group: one to four pairs of percent and speed. Only templates you made.

    Where the charging system shows the present group it is completed, and null removes a threshold. Thresholds 3 and 4 are
    documented for new templates only and go out only where they are given or already there.
    """
    row = await merged.upstream.ocs.templates.modify_throttling(merged.fields)
    return {"data": changed(merged.upstream, row)}
