"""How a new organisation says who brought it."""

from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.people.referrals import attach
from registry.errors import BadRequest, Conflict
from registry.limits import Role, Scope
from registry.model import Input
from registry.operation import Auth, Example, operation
from registry.policy import require, stamp
from storage.connection import Connection
from storage.people.affiliates import organisation_created, referral_of

# Case 43 of the threat model: an organisation that is exactly as old as this is too old.
LINK_SECONDS = 1800


class ReferralCode(Input):
    """Whose link was followed."""

    referral_code: Annotated[
        str, Field(min_length=1, max_length=64, description="The affiliate's code, 8 characters; upper and lower case are the same.")
    ]


class AffiliateLink(TypedDict):
    """Who brought the organisation; `linked_at` is RFC 3339 UTC."""

    object: Literal["affiliate_link"]
    organization_id: str
    referral_code: str
    linked_at: str


EXAMPLE: AffiliateLink = {
    "object": "affiliate_link",
    "organization_id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "referral_code": "K7M2XQ4P",
    "linked_at": "2026-11-20T09:00:00Z",
}


# Choice: for admins, since a referral is for ever; who has just signed up is the admin.
@operation(
    "POST",
    "/v1/affiliates/link",
    auth=Auth.SESSION,
    scope=Scope.NONE,
    role=Role.ADMIN,
    title="Attach referral code",
    raises=[BadRequest, Conflict],
    examples=[Example("We came by somebody's link", {"referral_code": "K7M2XQ4P"}, EXAMPLE)],
)
async def affiliates_link(ctx: Ctx, params: ReferralCode) -> AffiliateLink:
    """Say whose referral link brought your new organisation.

    Only within 30 minutes of the organisation's creation, once, by an admin who is signed in: an API key is refused.

    The same code again gives the same answer, at any time; another one is 409 `already_referred`. A code of your own organisation,
    or of one that you or another member belongs to, is refused.
    """
    require(Scope.ANY, ctx.caller, ctx.deps.site)  # a login that was only let read changes nothing
    caller = ctx.caller
    return await ctx.settle_result(link, organisation=caller.organisation, person=caller.principal, code=params.referral_code, now=ctx.now)


def link(connection: Connection, *, organisation: str, person: str, code: str, now: float) -> AffiliateLink:
    """Attach the code, unless it is too late; what is attached already is told again."""
    if referral_of(connection, organisation=organisation) is None:
        check_age(organisation_created(connection, organisation=organisation), now)
    outcome = attach(connection, organisation=organisation, person=person, code=code, now=now)
    referral = referral_of(connection, organisation=organisation)
    if outcome != "attached" or referral is None:
        raise not_attached(outcome)
    return {
        "object": "affiliate_link",
        "organization_id": organisation,
        "referral_code": referral.code,
        "linked_at": stamp(referral.created),
    }


def check_age(created: int | None, now: float) -> None:
    """Refuse an organisation that is not new. Its age counts from the whole second in which it was made."""
    if created is None or now - created >= LINK_SECONDS:
        raise BadRequest(
            f"Your organisation was created at {stamp(created or 0)}, and a referral code can only be attached in the first "
            f"{LINK_SECONDS // 60} minutes of an organisation",
            code="referral_too_late",
            param="referral_code",
            hint="Nothing can be done about it now; whoever signs up by a referral link is referred at once",
        )


def not_attached(outcome: str) -> BadRequest:
    """Why the code cannot be this organisation's."""
    if outcome == "self":
        return BadRequest(
            "referral_code: it is the code of your own organisation, or of one that you or another member of yours belongs to; "
            "nobody can refer themselves",
            code="self_referral",
            param="referral_code",
            hint="Give the code of whoever brought you, or none",
        )
    return BadRequest(
        "referral_code: nobody in the affiliate programme has this code; a code has 8 letters and digits, and never 0, O, 1 or I",
        param="referral_code",
        hint="Copy the code from the end of the link that you followed",
    )
