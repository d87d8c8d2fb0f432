"""What packages cost at the network, as plans count it: the same sums that the operations make due which assign them."""

from typing import cast

from clients.ocs.templates import Template
from operations.changes.plans.rows import Values
from operations.deps import Deps
from operations.upstream.connection import Upstream, upstream_of_organisation
from operations.upstream.resellers import find_template, own_templates
from operations.upstream.template_costs import package_due, series_due
from registry.errors import NotFound
from registry.operation import Due
from storage.change_rows import UNBOUNDED_COST

ASSIGNING_ACTIONS = ("assign_package", "assign_series")
ASSIGNING_OPERATIONS = {"assign_package": "assign_package", "assign_recurring_package": "assign_series"}


def assignment_cost(template: Template, action: str) -> int:
    """What a package of `template`, or twelve months of a series, costs at most, in whole euro cents; UNBOUNDED_COST: nobody can say."""
    due = series_due(template) if action == "assign_series" else package_due(template)
    return sum(money.amount for money in due.money) if isinstance(due, Due) else UNBOUNDED_COST


async def assignment_costs(upstream: Upstream, action: str) -> dict[int, int]:
    """The cost of every template of the organisation, a minute old at most. Waits for the network."""
    return {template.get("prepaidpackagetemplateid", 0): assignment_cost(template, action) for template in await own_templates(upstream)}


async def template_cost_now(deps: Deps, organisation: str, action: str, template_id: int) -> int | None:
    """The cost of one template, a minute old at most; None: it is gone. Raises OcsError. Waits for the network."""
    upstream = await upstream_of_organisation(deps, organisation)
    try:
        return assignment_cost(await find_template(upstream, template_id, "packageTemplateId"), action)
    except NotFound:
        return None


async def cost_has_risen(deps: Deps, organisation: str, call: tuple[str, Values], planned: int) -> bool:
    """Whether a call of a row would cost more now than was planned. Raises OcsError. Waits for the network."""
    operation, arguments = call
    action = ASSIGNING_OPERATIONS.get(operation)
    if action is None:
        return False
    now = await template_cost_now(deps, organisation, action, cast(int, arguments["packageTemplateId"]))
    return now is not None and now > planned
