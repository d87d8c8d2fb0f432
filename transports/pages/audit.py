"""The organisation's audit log, newest first, for its admins."""

from transports.pages.answers import Page
from transports.pages.asking import ask, given
from transports.pages.visit import Visit

LATEST = 50


async def show(visit: Visit) -> Page:
    """The latest entries; `outcome` picks those that ended so."""
    assert visit.organisation
    listed = await ask(visit, "list_audit_log", {"limit": LATEST} | given(visit.query, "outcome"))
    facts = {"entries": listed.rows, "outcome": visit.query.get("outcome", ""), "problem": listed.problem}
    return Page("audit.html", facts, status=200 if listed.problem is None else listed.problem.status)
