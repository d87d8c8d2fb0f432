"""Package templates: what packages are made from."""

from typing import Annotated

from pydantic import AliasChoices, Field, model_validator

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.template import Template
from operations.deps import Ctx
from operations.network.references import require_destination_list, require_sponsor, require_zone
from operations.network.template_shapes import TemplateRow, owner_of, template_id, template_row
from operations.services.network.accounts import UpstreamId
from operations.services.network.passing import Data, PartOf, listed
from operations.services.network.reached import Upstream
from operations.services.network.resellers import ResellerId, of_reseller
from operations.services.network.templates import TEMPLATES
from operations.services.network.upstream import reach, reseller_for
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation

SELECTORS = ("template_id", "sponsor_id", "location_zone_id", "destination_list_id", "reseller_id")
SPOKEN = {
    "template_id": "templateId",
    "sponsor_id": "sponsorId",
    "location_zone_id": "locationZoneId",
    "destination_list_id": "destinationListId",
}


class TemplateQuery(PartOf):
    """Which templates; at most one selector."""

    template_id: Annotated[UpstreamId | None, Field(description="At most one of these five.")] = None
    sponsor_id: Annotated[UpstreamId | None, Field(description="Of this sponsor.")] = None
    location_zone_id: Annotated[
        UpstreamId | None, Field(validation_alias=AliasChoices("locationZoneId", "zoneId", "zone_id"), description="In this zone.")
    ] = None
    destination_list_id: Annotated[UpstreamId | None, Field(description="To this list.")] = None
    reseller_id: ResellerId = None
    q: Annotated[str | None, Field(min_length=1, max_length=120, description="Part of a name.")] = None
    include_deleted: Annotated[bool, Field(description="Deleted ones too.")] = False

    @model_validator(mode="after")
    def check(self) -> "TemplateQuery":
        """The upstream takes one selector."""
        if sum(getattr(self, name) is not None for name in SELECTORS) > 1:
            raise ValueError("give at most one of templateId, sponsorId, locationZoneId, destinationListId, resellerId")
        if self.q is not None and not self.q.strip():
            raise ValueError("q: got only blanks; it must hold a part of a name, or be left out")
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

    assign_package gives a line a package of one. Which are recurring is not listed; names usually say. Bytes, seconds, days, EUR.

    Throttling and recurrence are shown where the charging system lists them; the answers of a change always show them.
    """
    upstream = await reach(ctx)
    await selector_there(upstream, params)
    rows = await templates_of(upstream, params)
    kept = [row for row in rows if params.include_deleted or not row.get("deleted")]
    if params.template_id is not None and not kept:
        raise none_such("templateId")
    found = [row for row in kept if params.q is None or called(row, params.q)]
    return listed(ctx, [template_row(row) for row in sorted(found, key=template_id)], params, template_id)


def called(row: Template, part: str) -> bool:
    """Whether the part stands in the name, in whatever case."""
    return part.strip().casefold() in row.get("prepaidpackagetemplatename", "").casefold()


async def selector_there(upstream: Upstream, params: TemplateQuery) -> None:
    """On a shared token what is named must be the own reseller's. Templates are checked by their rows: asking for one only reads it."""
    if not upstream.managed:
        return
    if params.sponsor_id is not None:
        await require_sponsor(upstream, params.sponsor_id)
    if params.location_zone_id is not None:
        await require_zone(upstream, params.location_zone_id, "locationZoneId")
    if params.destination_list_id is not None:
        await require_destination_list(upstream, params.destination_list_id)


async def templates_of(upstream: Upstream, params: TemplateQuery) -> list[Template]:
    """The templates of the selector, a minute old at most; without one, those of the own reseller."""
    given = {name: getattr(params, name) for name in SPOKEN if getattr(params, name) is not None}
    reseller = None if given else await reseller_for(upstream, params.reseller_id)
    key = (upstream.identity, TEMPLATES, "list", *given.items(), reseller)
    kept = upstream.reads.get(key, lambda: upstream.ocs.templates.list(**given, reseller_id=reseller))
    try:
        rows = await of_reseller(params.reseller_id, kept)
    except OcsNotFound:
        if given:
            raise none_such(SPOKEN[next(iter(given))]) from None
        raise
    own = await upstream.reseller_id() if upstream.managed else None
    return [row for row in rows if own in (None, owner_of(row))]


def none_such(param: str) -> NotFound:
    """Unknown and foreign ones are answered alike."""
    if param == "templateId":
        text = "Your account has no package template with this id"
        return NotFound(text, param=param, hint="list_package_templates without a selector names the ones you can use")
    return NotFound(f"Your reseller has nothing with this {param}", param=param, hint="Leave it out to list all templates")
