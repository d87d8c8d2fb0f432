"""Finding a package template that the caller named: visible, not deleted, and on a shared token of the own reseller."""

from clients.ocs.failure import OcsNotFound
from clients.ocs.wire.template import Template
from operations.services.network.reached import Upstream
from registry.errors import NotFound

TEMPLATES = "templates"
"""What cached answers about templates begin with: `upstream.reads.forget(upstream.identity, TEMPLATES)` after a change."""


async def find_template(upstream: Upstream, template_id: int, param: str) -> Template:
    """The template, a minute old at most; unknown, deleted and foreign ones are not found alike."""

    async def read() -> Template:  # a refusal is not kept, so that a new template is found at once
        return await read_template(upstream, template_id, param)

    return await upstream.reads.get((upstream.identity, TEMPLATES, "one", template_id), read)


async def read_template(upstream: Upstream, template_id: int, param: str) -> Template:
    """The template as it is now."""
    try:
        rows = await upstream.ocs.templates.list(template_id=template_id)
    except OcsNotFound:
        rows = []
    found = next((row for row in rows if row.get("prepaidpackagetemplateid") == template_id and not row.get("deleted")), None)
    if found is None or not await _own(upstream, found):
        raise NotFound(
            "Your account has no package template with this id", param=param, hint="list_package_templates names the ones you can use"
        )
    return found


async def _own(upstream: Upstream, template: Template) -> bool:
    """A shared token sees the templates of resellers below it, too; they are not the caller's."""
    if not upstream.managed:
        return True
    named = template.get("resellerid") or template.get("reseller", {}).get("resellerid")
    return named == await upstream.reseller_id()


async def own_templates(upstream: Upstream) -> list[Template]:
    """Every template the caller can use, a minute old at most."""
    reseller = await upstream.reseller_id()

    async def read() -> list[Template]:
        return await upstream.ocs.templates.list(reseller_id=reseller)

    rows = await upstream.reads.get((upstream.identity, TEMPLATES, "all"), read)
    return [row for row in rows if not row.get("deleted")]
