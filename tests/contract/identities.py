"""What every identity is answered, read from an operation's declaration and the words of the specification: docs/identities.md.

Nothing here asks the code that decides: credentials are rules 5.1 of tests/spec/rules.tsv, tiers and roles 5.2, and tenancy 2.
"""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from operations.catalogue import CATALOGUE
from registry.caller import Role, Tier
from registry.catalogue import AnyOperation
from registry.operation import Auth, Scope, shown_field_name
from tests.contract.cast import IDENTITIES, By, Identity, Narrow, Place
from tests.contract.connections import REPLACING
from tests.contract.payments import UNCONNECTED
from tests.contract.stage import GUARD, ID, NEVER, NEVER_STATUS

IDENTITIES_PAGE = Path(__file__).resolve().parents[2] / "docs" / "identities.md"
IDENTITIES_COMMAND = "UPDATE_SNAPSHOTS=1 python -m pytest tests/contract/test_identities.py"


class ExpectedAnswer(NamedTuple):
    """What is said, and what it costs."""

    status: int
    code: str = ""
    cost: int = 0
    looked: bool = False
    """The network was read before the call was refused: whose a thing there is, only the network knows."""


MEMBERS = {By.KEY, By.SESSION, By.LOGIN}
TAKERS = {
    Auth.PUBLIC: set(By),
    Auth.SIGNATURE: set(),
    Auth.INTERNAL: {By.SHARED},
    Auth.BRIDGE: {By.SHARED},
    Auth.STOREFRONT: {By.SHOP},
    Auth.STOREFRONT_OPEN: {By.SHOP},
    Auth.BEARER: MEMBERS,
    Auth.SESSION: {By.SESSION, By.LOGIN},
}
"""Which credentials each kind of operation takes (rules 5.1). Without a secret of its own the bridge's route takes the internal key;
where a storefront key is set, the routes that are open without one take it.

Where the credential is a signature over the body, none of these has it.
"""
CARRIED = {
    Scope.NONE: {(tier, role) for tier in Tier for role in Role},
    Scope.READ: {(tier, role) for tier in Tier for role in Role},
    Scope.ANY: {(tier, role) for tier in Tier for role in Role},
    Scope.WRITE: {(tier, role) for tier in (Tier.PRO, Tier.ENTERPRISE) for role in Role},
    Scope.ADMIN: {(Tier.ENTERPRISE, Role.ADMIN)},
}
"""Who carries a scope (rules 5.2)."""
OF_THE_ACCOUNT = {"iccid", "packageId", "rangeStart", "accountId", "destAccount"}
OF_THE_RESELLER = {
    "resellerId",
    "packageTemplateId",
    "templateId",
    "template_id",
    "locationZoneId",
    "networkProfileId",
    "listId",
    "destinationListId",
    "planId",
    "voipPlanId",
}
"""Whose the things of the network are: all its accounts read what is the reseller's, and who made it changes it (rules 2)."""
OF_THE_LEDGER = {"idempotencyKey"}
OWN_SETS = {"apply_changes", "cancel_change_set"}
"""What a credential that may do less than its person does with its own change sets alone; those of the identities are another's."""
OF_ONE_TEMPLATE = {"create_connectivity_product"}
"""What is kept for good about a template of the reseller. It is read by the way, so that looking costs nothing."""
LINES_READ = {"plan_changes", "undo_changes"}
"""What reads the one line that its example names, or whose set does, which counts as another call."""
ROWS_OF_OTHERS = {"plan_changes", "apply_changes", "undo_changes"}
SETS_OF_OTHERS = {"get_change_set", "apply_changes", "cancel_change_set", "undo_changes"}
"""Names that are ours without looking like it."""


def expected(operation: AnyOperation, who: Identity, *, live: bool = True) -> ExpectedAnswer:
    """The first reason to refuse, else the declared answer; not `live`: the call replaces nothing, or it has done so before."""
    rules = RULES if live else [rule for rule in RULES if rule not in OF_WHAT_IS_LIVE]
    return next(said for rule in rules if (said := rule(operation, who)) is not None)


def by_credential(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    if who.by not in TAKERS[operation.auth]:
        return ExpectedAnswer(401, "unauthorized")
    return None if operation.auth in (Auth.BEARER, Auth.SESSION) else done(operation, who)


def by_guard(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """Always 405 (rules 4.7)."""
    return ExpectedAnswer(405, NEVER[GUARD]) if operation.id == GUARD else None


def by_membership(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """What acts for an organisation needs one."""
    return ExpectedAnswer(409, "organization_required") if who.place is Place.ALONE and operation.organisation else None


def by_tier(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """A membership that lacks the scope is told which tier has it."""
    return None if (who.tier, who.role) in CARRIED[operation.scope] else ExpectedAnswer(402, "upgrade_required")


def by_role(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """Some operations are for admins, on any tier; whoever is in no organisation is nobody's admin."""
    if operation.role is not Role.ADMIN:
        return None
    return ExpectedAnswer(403, "role_required") if who.role is not Role.ADMIN else None


def shows_less(who: Identity) -> bool:
    """Whether the credential may do less than its person."""
    return who.narrow is not None or (who.granted is not None and set(who.granted.split()) < {"read", "write", "admin"})


def by_live_connection(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """What would replace a live connection is for admins; whoever is in no organisation was refused before."""
    if operation.id not in REPLACING or who.place is Place.ALONE:
        return None
    return ExpectedAnswer(403, "role_required") if who.role is not Role.ADMIN else None


def by_login_to_what_is_live(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """And for credentials that may do all that their person may; those that lead to the pages of a live payment account, too."""
    redirects = operation.id in REPLACING or operation.id == "operator_billing_connect_dashboard_link"
    return RESTRICTED if redirects and shows_less(who) else None


def by_former_token(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """Whoever is elsewhere has replaced no token."""
    gone = operation.id == "onboarding_restore_ocs_token" and who.place is not Place.HERE
    return ExpectedAnswer(409, "no_former_token") if gone else None


def by_login(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """A login does what was granted to it, and not all that its person may do."""
    granted = {"read", "write", "admin"} if who.granted is None else set(who.granted.split())
    admin = operation.scope is Scope.ADMIN or operation.role is Role.ADMIN
    lacking = ("admin" not in granted and admin) or ("write" not in granted and not operation.read_only)
    return RESTRICTED if lacking else None


def by_restriction(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """A restricted key calls what its restriction lets it, and only for what stands in it. Who they are everybody may ask."""
    if operation.id in ("whoami", "explain_key"):
        return None
    if who.narrow in (Narrow.READ_ONLY, Narrow.OTHER_TOOLSET):
        reads = operation.read_only and operation.scope is not Scope.ADMIN
        return None if who.narrow is Narrow.READ_ONLY and reads else RESTRICTED
    if operation.id in ROWS_OF_OTHERS and who.narrow is Narrow.TOOLSET:
        return RESTRICTED  # its rows are calls of another toolset
    if operation.id in SETS_OF_OTHERS and who.narrow in (Narrow.LINE, Narrow.OTHER_LINE, Narrow.ACCOUNT, Narrow.OTHER_ACCOUNT):
        return ExpectedAnswer(404, "not_found")  # it was made with another credential, and its rows may show other lines
    if operation.id in OWN_SETS and shows_less(who):
        return RESTRICTED
    if operation.bounded and not names(operation, "iccid"):  # it shows what the credential may see, which may be nothing
        return None
    if who.narrow in (Narrow.LINE, Narrow.OTHER_LINE):
        return None if names(operation, "iccid") and who.narrow is Narrow.LINE else RESTRICTED
    if who.narrow in (Narrow.ACCOUNT, Narrow.OTHER_ACCOUNT):
        return by_account(operation, who)
    return None


def by_authority(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """Who shows less than their person has changes nobody's access; no identity here is the credential that the call names."""
    authority = operation.authority
    return RESTRICTED if shows_less(who) and authority is not None and not authority.narrower else None


def by_account(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """The input names every account it is about, or a line, whose account the network is asked for."""
    own = who.narrow is Narrow.ACCOUNT
    if account_fields(operation):
        named = any(name in operation.examples[0].input for name in account_fields(operation))
        return None if named and own else RESTRICTED
    if names(operation, "iccid"):
        return None if own else RESTRICTED._replace(cost=1, looked=True)
    return RESTRICTED


def by_offer(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """Some operations say that they are not offered."""
    return ExpectedAnswer(NEVER_STATUS[operation.id], NEVER[operation.id]) if operation.id in NEVER else None


def by_payment_account(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """Whoever is elsewhere has no account at the payment processor."""
    elsewhere = who.place is not Place.HERE and operation.id in UNCONNECTED
    return ExpectedAnswer(409, "payments_not_connected") if elsewhere else None


def by_consent(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """A consent is finished by the person who began it, who is none of these."""
    return ExpectedAnswer(400, "invalid_request") if operation.id == "operator_billing_connect_oauth_complete" else None


def by_owner(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """What is somebody else's is not there. That costs nothing, unless the network was to be asked."""
    if who.place is Place.HERE:
        return None
    if operation.id in OF_ONE_TEMPLATE and who.place is Place.ABROAD:
        return ExpectedAnswer(404, "not_found", looked=True)
    example = operation.examples[0].input
    stored = [name for name, value in example.items() if (isinstance(value, str) and ID.fullmatch(value)) or name in OF_THE_LEDGER]
    if any(required(operation, name) for name in stored):  # a filter that is left empty finds nothing, and that is no refusal
        return ExpectedAnswer(404, "not_found")
    theirs = {name for name in OF_THE_ACCOUNT & set(example) if operation.upstream or name != "iccid"}  # notes are kept by organisation
    shared = OF_THE_RESELLER & set(example)
    if who.place is Place.SIBLING and not operation.read_only:
        shared = {name for name in shared if inside(operation, name)}
    elif who.place is Place.SIBLING:
        shared = set()
    return ExpectedAnswer(404, "not_found", operation.charged, looked=True) if theirs | shared else None


def by_maker(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """A key is its maker's and the admins' to change; to others it is not there."""
    keys = [value for value in operation.examples[0].input.values() if str(value).startswith("key_")]
    admin = who.role is Role.ADMIN and (who.granted is None or "admin" in who.granted)
    return ExpectedAnswer(404, "not_found") if keys and not operation.read_only and not admin else None


def by_limit(operation: AnyOperation, who: Identity) -> ExpectedAnswer | None:
    """A key's own calls of the day; what is not charged is not counted."""
    return ExpectedAnswer(429, "quota_exceeded", looked=True) if who.narrow is Narrow.USED_UP and operation.charged else None


def done(operation: AnyOperation, who: Identity) -> ExpectedAnswer:
    lines = int(operation.id in LINES_READ and who.narrow is not Narrow.OTHER_LINE)
    return ExpectedAnswer(operation.status, cost=int(operation.charged) + lines)


RESTRICTED = ExpectedAnswer(403, "credential_restricted")
OF_WHAT_IS_LIVE = (by_live_connection, by_login_to_what_is_live)
RULES: tuple[Callable[[AnyOperation, Identity], ExpectedAnswer | None], ...] = (
    by_credential,
    by_guard,
    by_membership,
    by_tier,
    by_role,
    by_login,
    by_restriction,
    by_live_connection,
    by_login_to_what_is_live,
    by_former_token,
    by_authority,
    by_offer,
    by_payment_account,
    by_owner,
    by_maker,
    by_limit,
    by_consent,
    done,
)


def fields(operation: AnyOperation) -> dict[str, bool]:
    """The documented names of the input's fields, and whether each is required."""
    return {shown_field_name(name, info): info.is_required() for name, info in operation.params.model_fields.items()}


def account_fields(operation: AnyOperation) -> list[str]:
    return [name for name in fields(operation) if "account" in name.lower()]


def names(operation: AnyOperation, field: str) -> bool:
    """Whether the documented call names it."""
    return field in fields(operation) and field in operation.examples[0].input


def inside(operation: AnyOperation, field: str) -> bool:
    """Whether the path names it: it is what the operation is about."""
    return "{" + field + "}" in operation.path


def required(operation: AnyOperation, field: str) -> bool:
    """Whether there is no call without it."""
    return fields(operation)[field]


def doors(operation: AnyOperation) -> str:
    return "HTTP, MCP" if operation.tool else "HTTP"


def identities_page() -> str:
    columns = [each.name for each in IDENTITIES]
    lines = [f"| {' | '.join(['operation', 'doors', *columns])} |", f"|{'---|' * (2 + len(columns))}"]
    for operation in CATALOGUE.operations.values():
        said = [expected(operation, who) for who in IDENTITIES]
        cells = [f"{each.status} {each.code}".strip() for each in said]
        lines.append(f"| {' | '.join([f'`{operation.id}`', doors(operation), *cells])} |")
    return INTRODUCTION + "\n".join(lines) + "\n"


INTRODUCTION = f"""# Identities

What every operation answers to everybody who may come: HTTP status and `code`. The call is the documented one, for an enterprise
organisation that has all it names. Each cell is read from the operation's declaration, and a test asks the service for every one of them
at every door: both give the same answer at the same cost. `{IDENTITIES_COMMAND}` writes this file anew.

A call that succeeds costs one call of the quota, where calls are charged. One that is refused costs nothing, changes nothing and reaches no
upstream, with one exception: whose a thing of the network is, only the network knows. So a 404 for a foreign one and a 403 for a key of
other accounts may need to read there first, which costs one call; a 429 comes after such a read.

- **nobody**, **unknown key**: no credential, and a key that nobody made. **internal key**: the deployment's, which the bridge has.
- **no organisation**: a key of a person who belongs to none.
- **foreign organisation**: an admin of another enterprise organisation names what this one has; its account is of the same reseller, or of
  another one.
- **free**, **pro** and **enterprise** with **member** and **admin**: people of the organisation, by its tier and their role.
- **session**: an admin's token of an external identity provider. **login**: an admin's token of the built-in one, with what was granted.
- **key**: an admin's key with one restriction. *its own* is the toolset of the operation, or the line or account that the call names.

The organisation and its account are live, so a call that replaces something live is for admins here, and confirmed; where nothing is live
yet anybody may make it. `docs/identity.md` says which calls those are, and why.

"""
