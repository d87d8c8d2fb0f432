"""The organisation's audit log, newest first, for its admins."""

from collections.abc import Mapping
from urllib.parse import urlencode

from transports.pages.answers import Page
from transports.pages.asking import ask, given
from transports.pages.visit import Visit

LATEST = 50
OUTCOMES = {
    "": "Everything",
    "ok": "Done",
    "replayed": "Done before, answered again",
    "invalid_request": "Refused: not understood",
    "not_found": "Refused: not there",
    "conflict": "Refused: in conflict",
    "role_required": "Refused: for admins",
    "credential_restricted": "Refused: the key or login may not",
    "upgrade_required": "Refused: for a larger tier",
    "rate_limited": "Refused: too many at once",
    "quota_exceeded": "Refused: too many that day",
}
LOOKS = frozenset({"get_onboarding_state", "list_api_keys", "list_members", "list_audit_log", "list_package_templates"}) | {
    "affiliates_me_get",
    "affiliates_me_commissions_list",
    "operator_billing_connect_status",
}
"""What our own pages read to be shown."""


async def show(visit: Visit) -> Page:
    """The latest entries, or those after one; `outcome` picks those that ended so. The pages' own reads are shown when asked for."""
    assert visit.organisation
    listed = await ask(visit, "list_audit_log", {"limit": LATEST} | given(visit.query, "outcome", "starting_after"))
    problem, outcome, looks = listed.problem, visit.query.get("outcome", ""), visit.query.get("looks") == "shown"
    if problem is not None and problem.code == "role_required":
        return Page("error.html", {"problem": problem}, status=problem.status)
    entries = [one for one in listed.rows if looks or not is_look(one)]
    kept = {"outcome": outcome} if outcome else {}
    older = {"starting_after": str(listed.rows[-1]["id"])} if listed.body.get("has_more") else None
    facts: Mapping[str, object] = {
        "entries": entries,
        "outcome": outcome,
        "outcomes": OUTCOMES | ({} if outcome in OUTCOMES else {outcome: outcome}),
        "looks": looks,
        "hidden": len(listed.rows) - len(entries),
        "with_looks": urlencode({**visit.query, "looks": "shown"}),
        "older": None if older is None else urlencode(kept | ({"looks": "shown"} if looks else {}) | older),
        "problem": problem,
    }
    return Page("audit.html", facts, status=200 if problem is None else problem.status)


def is_look(entry: Mapping[str, object]) -> bool:
    """Whether it is a page's own read, which somebody who looks for what was done does not look for."""
    return entry["surface"] == "web" and entry["outcome"] == "ok" and entry["operation"] in LOOKS
