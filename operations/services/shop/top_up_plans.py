"""Which plans of its shop an order's eSIM can be given more data of."""

from collections.abc import Mapping

from clients.ocs.wire.template import Template
from operations.deps import Deps
from operations.services.issuing.issued_line import issued_line
from operations.services.network.templates import own_templates
from operations.services.network.upstream import reach_for
from storage.connection import Connection
from storage.issuing.issuance import IssuanceRow, find_issuance
from storage.shop.order_status import cancelled_at, status_of
from storage.shop.orders import OrderRow
from storage.shop.storefront_plans import StorefrontPlan, plans_on_sale
from storage.shop.storefronts import storefront_of


async def addable(deps: Deps, order: OrderRow) -> list[StorefrontPlan]:
    """As the shop displays them; empty when nothing can be added. A charging system that fails is an OcsError."""
    if status_of(order) != "ready" or cancelled_at(order) is not None:
        return []
    plans = await deps.store.read(plans_shown, storefront=order.storefront)
    row = await deps.store.read(find_issuance, organisation=order.organisation, key=order.id)
    if not plans or row is None or row.state != "issued":
        return []
    upstream = await reach_for(deps, order.organisation)
    if await issued_line(upstream, row) is None:
        return []
    templates = {id: template for template in await own_templates(upstream) if (id := template.get("prepaidpackagetemplateid"))}
    return [plan for plan in plans if fits(plan, row, templates)]


def plans_shown(connection: Connection, *, storefront: str) -> list[StorefrontPlan]:
    """What the shop sells; a shop that was taken off the web sells nothing."""
    shop = storefront_of(connection, storefront=storefront)
    return [] if shop is None or shop.status != "published" else plans_on_sale(connection, storefront=storefront)


def fits(plan: StorefrontPlan, row: IssuanceRow, templates: Mapping[int, Template]) -> bool:
    """Whether the template is there, is of one package, and goes on this SIM.

    Choice: nothing tells a SIM's sponsor, but the template that it was drawn with is of the same one. Where that is gone, or says
    nothing, only packages of the very same template are sure to go on it.
    """
    template, first = templates.get(plan.template_id), templates.get(row.template_id)
    if template is None or template.get("recurring"):
        return False
    if plan.template_id == row.template_id:
        return True
    sponsor = None if first is None else sponsor_of(first)
    return sponsor is not None and sponsor_of(template) == sponsor


def sponsor_of(template: Template) -> int | None:
    """Whose SIMs its packages go on."""
    return template.get("sponsors", {}).get("sponsorid")
