"""A template as answers show it, and a template that the caller may change."""

from typing import Annotated, NamedTuple, cast

from pydantic import Field

from clients.ocs.wire.members import keeps_unknown
from clients.ocs.wire.template import Template, TemplateFields
from operations.deps import Ctx
from operations.services.network.accounts import UpstreamId
from operations.services.network.reached import Upstream
from operations.services.network.templates import TEMPLATES, read_template
from operations.services.network.upstream import reach, require_creator
from registry.errors import BadRequest
from registry.model import CamelInput


@keeps_unknown
class TemplateRow(Template, total=False):
    """A package template."""

    templateId: Annotated[int, Field(description="What other operations call it by")]


class TemplateRef(CamelInput):
    """Which template."""

    template_id: Annotated[UpstreamId, Field(description="Id of list_package_templates.")]


class OwnTemplate(NamedTuple):
    """A template that the caller may change, as it is now."""

    upstream: Upstream
    id: int
    row: Template


class Merged(NamedTuple):
    """The whole group of fields as it is to be."""

    upstream: Upstream
    fields: TemplateFields


async def own_template(ctx: Ctx, template_id: int) -> OwnTemplate:
    """In managed mode one that the caller's organisation made."""
    upstream = await reach(ctx)
    row = await read_template(upstream, template_id, "templateId")
    await require_creator(ctx, upstream, "template", template_id, "templateId")
    return OwnTemplate(upstream, template_id, row)


def template_row(row: Template) -> TemplateRow:
    """The template with the id that other operations take."""
    return cast(TemplateRow, {"templateId": template_id(row), **row})


def template_id(row: Template) -> int:
    """The number of a template."""
    return row.get("prepaidpackagetemplateid", 0)


def owner_of(row: Template) -> int | None:
    """Whose template it is."""
    return row.get("resellerid") or row.get("reseller", {}).get("resellerid")


def changed(upstream: Upstream, row: Template) -> TemplateRow:
    """The answer of a change; kept answers about templates are stale now."""
    upstream.reads.forget(upstream.identity, TEMPLATES)
    return template_row(row)


def refuse(fault: tuple[str, str] | None, *, merged: bool) -> None:
    """A rule that the whole group breaks, once what is there was added to what was given."""
    if fault is None:
        return
    param, text = fault
    hint = None if merged else "The charging system does not show this group of the template, so it cannot be completed: send all of it"
    raise BadRequest(f"{param}: {text}", param=param, hint=hint)
