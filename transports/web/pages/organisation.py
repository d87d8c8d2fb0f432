"""The pages of an organisation: its members, its affiliate programme, and its audit log."""

from collections.abc import Mapping
from urllib.parse import urlencode

from starlette.responses import Response

from transports.web.pages.calls import call_operation, filled_fields
from transports.web.pages.request import PageProblem, PageRequest, unknown_form


async def show_members(visit: PageRequest, problem: PageProblem | None = None) -> Response:
    """The members; admins see the forms, too, with what was typed where that was refused."""
    assert visit.organisation
    cursor = visit.query.get("after")
    listed = await call_operation(visit, "list_members", {"limit": 100} | ({} if cursor is None else {"starting_after": cursor}))
    problem = problem or listed.problem
    facts: Mapping[str, object] = {
        "members": listed.rows,
        "more": bool(listed.body.get("has_more")),
        "typed": visit.form if problem is not None else {},
    }
    return visit.page("members.html", facts, problem=problem)


async def post_members(visit: PageRequest) -> Response:
    """Ask somebody in, or end a membership or an invitation; whoever signed in long ago signs in again before."""
    if visit.form.get("do") == "again" or not visit.signed_in_lately:
        return await visit.sign_in_again("/auth/members")
    match visit.form.get("do"):
        case "invite":
            outcome = await call_operation(visit, "invite_member", filled_fields(visit.form, "email", "role"))
        case "remove":
            outcome = await call_operation(visit, "remove_member", filled_fields(visit.form, "id"))
        case _:
            raise unknown_form()
    return visit.redirect("/members") if outcome.problem is None else await show_members(visit, outcome.problem)


async def show_affiliates(visit: PageRequest, problem: PageProblem | None = None) -> Response:
    """How the organisation stands, and the months that earned something. `problem`: why joining was refused."""
    assert visit.organisation
    standing = await call_operation(visit, "affiliates_me_get", {})
    if standing.problem is not None:
        return visit.page("error.html", {}, problem=standing.problem)
    listed = await call_operation(visit, "affiliates_me_commissions_list", {"limit": 50} | filled_fields(visit.query, "starting_after"))
    problem = problem or listed.problem
    facts: Mapping[str, object] = {
        "standing": standing.body,
        "commissions": listed.rows,
        "more": bool(listed.body.get("has_more")),
    }
    return visit.page("affiliates.html", facts, problem=problem)


async def post_affiliates(visit: PageRequest) -> Response:
    """Join; there is nothing else to do here."""
    assert visit.organisation
    outcome = await call_operation(visit, "affiliates_me_create", {})
    return visit.redirect("/affiliates") if outcome.problem is None else await show_affiliates(visit, outcome.problem)


AUDIT_PAGE_SIZE = 50
AUDIT_OUTCOMES = {
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
PAGE_READS = frozenset({"get_onboarding_state", "list_api_keys", "list_members", "list_audit_log", "list_package_templates"}) | {
    "affiliates_me_get",
    "affiliates_me_commissions_list",
    "operator_billing_connect_status",
    "list_approvals",
}
"""What our own pages read to be shown."""


async def show_audit(visit: PageRequest) -> Response:
    """The latest entries, or those after one; `outcome` picks those that ended so. The pages' own reads are shown when asked for."""
    assert visit.organisation
    listed = await call_operation(
        visit, "list_audit_log", {"limit": AUDIT_PAGE_SIZE} | filled_fields(visit.query, "outcome", "starting_after")
    )
    problem, outcome, looks = listed.problem, visit.query.get("outcome", ""), visit.query.get("looks") == "shown"
    if problem is not None and problem.code == "role_required":
        return visit.page("error.html", {}, problem=problem)
    entries = [one for one in listed.rows if looks or not is_page_read(one)]
    kept = {"outcome": outcome} if outcome else {}
    older = {"starting_after": str(listed.rows[-1]["id"])} if listed.body.get("has_more") else None
    facts: Mapping[str, object] = {
        "entries": entries,
        "outcome": outcome,
        "outcomes": AUDIT_OUTCOMES | ({} if outcome in AUDIT_OUTCOMES else {outcome: outcome}),
        "looks": looks,
        "hidden": len(listed.rows) - len(entries),
        "with_looks": urlencode({**visit.query, "looks": "shown"}),
        "older": None if older is None else urlencode(kept | ({"looks": "shown"} if looks else {}) | older),
    }
    return visit.page("audit.html", facts, problem=problem)


def is_page_read(entry: Mapping[str, object]) -> bool:
    """Whether an audit entry is a page's own read, which the audit page hides unless asked."""
    return entry["surface"] == "web" and entry["outcome"] == "ok" and entry["operation"] in PAGE_READS
