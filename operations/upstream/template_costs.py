"""What packages of a template make due: its cost at the charging system, once or for a year of a series."""

import math
from decimal import ROUND_CEILING, Decimal

from clients.ocs.templates import Template
from operations.upstream.connection import Upstream
from operations.upstream.resellers import find_template
from operations.upstream.template_terms import COST_CURRENCY
from registry.caller import Money
from registry.operation import NOTHING_DUE, Due, SpendKind

DAYS_OF_YEAR, WEEKS_OF_YEAR, MONTHS_OF_YEAR = 366, 53, 12
PERIODS_OF_YEAR = (DAYS_OF_YEAR, WEEKS_OF_YEAR, MONTHS_OF_YEAR)
"""How often a series of a periodicity, daily, weekly or monthly, begins a period within twelve months, at most."""


def euro_cents(amount: float, times: int = 1) -> int:
    """`times` the `amount`, EUR, in cents, rounded up: what is due is never shown as less."""
    return int((Decimal(str(amount)) * times * 100).to_integral_value(ROUND_CEILING))


def package_due(template: Template, packages: int = 1, lines: int = 1) -> Due | SpendKind:
    """What `packages` packages of `template` make due, on at most `lines` new lines; OPEN where the charging system names no cost."""
    cost = template.get("cost")
    if cost is None:
        return SpendKind.OPEN
    return Due((Money(euro_cents(cost, packages), COST_CURRENCY),), lines)


def packages_of_year(template: Template) -> int | None:
    """How many packages a series of `template` makes in twelve months, at most; None where its recurrence is not told."""
    if template.get("recurring") is False:
        return 1
    kind, every = template.get("recurringPeriodicityType"), template.get("recurringPeriodicityFrequency")
    if kind is None or every is None or not 0 <= kind < len(PERIODS_OF_YEAR):
        return None
    found = math.ceil(PERIODS_OF_YEAR[kind] / max(1, every))
    most = template.get("nbOccurrence")
    return found if most is None else min(found, most)


def series_due(template: Template) -> Due | SpendKind:
    """What twelve months of a series of `template` make due; OPEN where its cost or how often it recurs is not told."""
    if template.get("cost") == 0:
        return NOTHING_DUE._replace(lines=1)
    packages = packages_of_year(template)
    return SpendKind.OPEN if packages is None else package_due(template, packages)


async def due_of_template(upstream: Upstream, template_id: int, param: str) -> Due | SpendKind:
    """What one package of the template makes due. Raises NotFound, which names `param`. Waits for the network."""
    return package_due(await find_template(upstream, template_id, param))


async def due_of_series(upstream: Upstream, template_id: int, param: str) -> Due | SpendKind:
    """What twelve months of a series of the template make due.

    OPEN where the charging system does not tell how often it recurs. Raises NotFound, which names `param`. Waits for the network.
    """
    return series_due(await find_template(upstream, template_id, param))
