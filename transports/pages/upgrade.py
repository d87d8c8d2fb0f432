"""What the tiers carry, and whom to ask for a larger one."""

from registry.limits import Role, Scope, Tier, scopes_of
from transports.pages.answers import Page
from transports.pages.visit import Visit

WORDS = {Scope.READ: "read", Scope.WRITE: "write", Scope.ADMIN: "admin"}


async def show(visit: Visit) -> Page:
    """For anybody: refusals of the API lead here."""
    carried = {tier: [word for scope, word in WORDS.items() if scope in scopes_of(tier, Role.ADMIN)] for tier in Tier}
    current = visit.caller.tier if visit.caller is not None and visit.caller.organisation else None
    return Page("upgrade.html", {"tiers": visit.desk.deps.pace.limits.tiers, "carried": carried, "current": current})
