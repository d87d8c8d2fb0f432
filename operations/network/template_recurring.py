"""Changing how often the packages of a template come again."""

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from operations.deps import Ctx
from operations.network.template_fields import RECURRENCE, Recurrence, given, present, recurrence_fault, sent
from operations.network.template_shapes import Merged, TemplateRef, TemplateRow, changed, own_template, refuse
from operations.services.network.passing import Data
from registry.errors import BadRequest, NotFound, OcsError
from registry.limits import Scope
from registry.operation import Example, operation


class RecurrenceChange(Recurrence, TemplateRef):
    """What changes; the rest stays."""

    null_clears: ClassVar[frozenset[str]] = frozenset({"nb_occurrence"})

    recurring: Annotated[bool | None, Field(description="false ends its series. Absent: as it is, else true.")] = None

    @model_validator(mode="after")
    def check(self) -> "RecurrenceChange":
        """What ends has no rhythm."""
        if self.recurring is False and any(getattr(self, name) is not None for name in Recurrence.model_fields):
            raise ValueError("recurring is false, so the recurrence means nothing: send recurring: true, or leave the recurrence out")
        return self


async def merge(ctx: Ctx, params: RecurrenceChange) -> Merged:
    """The upstream replaces the group, so what is not given is read from the template, where lists show it."""
    upstream, id, row = await own_template(ctx, params.template_id)
    if params.recurring is False:
        return Merged(upstream, sent({"prepaidpackagetemplateid": id, "recurring": False}))
    changes = given(params)
    changes.pop("templateId")
    group: dict[str, object] = present(row, RECURRENCE) | changes
    if group.get("recurring") is None:
        group["recurring"] = True
    if not group["recurring"] and set(changes) - {"recurring"}:
        raise BadRequest(
            "recurring: the template is not recurring now, so the recurrence means nothing",
            param="recurring",
            hint="Send recurring: true with the whole group",
        )
    refuse(recurrence_fault(group), merged="recurring" in row)
    return Merged(upstream, sent(group, {"prepaidpackagetemplateid": id}))


@operation(
    "PUT",
    "/v1/package-templates/{templateId}/recurring",
    scope=Scope.ADMIN,
    upstream=True,
    operator=True,
    confirm=True,
    access=merge,
    raises=[BadRequest, NotFound, OcsError],
    examples=[
        Example(
            "Every month, six times",
            {
                "templateId": 55051,
                "recurring": True,
                "nbOccurrence": 6,
                "recurringPeriodicityType": 2,
                "recurringPeriodicityFrequency": 1,
                "reportUnitsPreviousPackage": False,
            },
            {
                "data": {
                    "templateId": 55051,
                    "prepaidpackagetemplateid": 55051,
                    "recurring": True,
                    "nbOccurrence": 6,
                    "recurringPeriodicityType": 2,
                    "recurringPeriodicityFrequency": 1,
                    "reportUnitsPreviousPackage": False,
                }
            },
        )
    ],
)
async def modify_template_recurring(ctx: Ctx, params: RecurrenceChange, merged: Merged) -> Data[TemplateRow]:
    """Change how often a template's packages come again, or stop it.

    Send the whole group. Running series keep their rhythm; false ends them. Only templates you made.

    Where the charging system shows the present group it is completed.
    """
    row = await merged.upstream.ocs.templates.modify_recurring(merged.fields)
    return {"data": changed(merged.upstream, row)}
