"""Whoever runs the service, at its command line: how the audit log of an organisation calls them."""

import getpass

from registry.ids import Ids
from registry.ports import Line

NAMELESS = "operator"


def operator_name() -> str:
    """The user's name; a user without one, as in some containers, is the operator."""
    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return NAMELESS


def done_here(ids: Ids, *, organisation: str, operation: str, outcome: str, now: float, change: str | None = None) -> Line:
    """The audit row of a change that is no call of an operation. `change`: what it changed of who gets money and SIMs."""
    return Line(now, organisation, "cli", operation, operator_name(), "", outcome, 200, 0.0, ids.new("req_"), change)
