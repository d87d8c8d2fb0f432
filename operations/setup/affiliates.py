"""The affiliate programme: referral codes, the organisations that they brought, and the commissions of those."""

import re
from typing import Annotated, Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx, Deps
from operations.vocabulary import ListOf, ListPage, list_page, render_fields, unknown_last_id
from registry.caller import Role
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, Conflict
from registry.ids import Ids
from registry.operation import Auth, Example, Input, Nothing, Scope, SpendKind, operation
from registry.policy import require_scope
from storage.affiliates import (
    Affiliate,
    affiliate_of,
    affiliate_with,
    count_referrals,
    insert_affiliate,
    insert_referral,
    organisation_created,
    referral_of,
    shares_people,
)
from storage.commissions import LAST_COMMISSION_PLACE, RATE_BPS, Commission, commission_place, earned_totals, list_commissions
from storage.engine.sql import Connection

# Letters and digits that nobody takes for one another when they are read out: no 0 and O, no 1 and I.
REFERRAL_ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"
_REFERRAL_CODE = re.compile(f"[{REFERRAL_ALPHABET}]{{8}}")


def _referral_code_owner(connection: Connection, code: str) -> Affiliate | None:
    kept = code.strip().upper()  # typed in lower case, or with space around it, it is the same
    return affiliate_with(connection, code=kept) if _REFERRAL_CODE.fullmatch(kept) else None


def is_referral_code(connection: Connection, *, code: str) -> bool:
    """Whether an affiliate has this `code`."""
    return _referral_code_owner(connection, code) is not None


def attach_referral(
    connection: Connection, *, organisation: str, person: str, code: str, now: float
) -> Literal["attached", "self", "unknown"]:
    """Keep that the code's owner brought the organisation. Conflict when somebody else did before.

    Choice: nobody brings themselves: a code is refused as one's own when the person, or any member of the organisation, is a member
    of the one whose code it is.
    """
    affiliate = _referral_code_owner(connection, code)
    if affiliate is None:
        return "unknown"
    theirs = affiliate.organisation
    if theirs == organisation or shares_people(connection, affiliate=theirs, organisation=organisation, person=person):
        return "self"
    if not insert_referral(connection, organisation=organisation, affiliate=theirs, now=now):
        before = referral_of(connection, organisation=organisation)
        if before is not None and before.affiliate != theirs:
            raise Conflict(
                "referral_code: your organisation has been referred with another code before, and the first one stays",
                code="already_referred",
                param="referral_code",
                hint="Leave it as it is: a referral cannot be changed",
            )
    return "attached"


def join_affiliates(connection: Connection, *, organisation: str, now: float, ids: Ids) -> tuple[Affiliate, bool]:
    """The organisation as an affiliate, and whether it is new as one. A code that happens to be somebody's is drawn again."""
    while True:
        code = "".join(REFERRAL_ALPHABET[byte & 31] for byte in ids.bytes(8))
        new = insert_affiliate(connection, organisation=organisation, code=code, now=now)
        affiliate = affiliate_of(connection, organisation=organisation)
        if affiliate is not None:
            return affiliate, new


class Earnings(TypedDict):
    """All commissions of one currency, in minor units."""

    currency: str
    amount: int


class AffiliateState(TypedDict):
    """The organisation in the affiliate programme; without `joined` there is no code and no link. Times are RFC 3339 UTC."""

    object: Literal["affiliate"]
    joined: bool
    code: str | None
    link: str | None
    referral_count: int
    earnings: list[Earnings]
    payout_status: Literal["not_joined", "no_earnings", "pending"]
    created_at: str | None


_AFFILIATE_EXAMPLE: AffiliateState = {
    "object": "affiliate",
    "joined": True,
    "code": "K7M2XQ4P",
    "link": "https://reseller.example.com/auth/sign-up?ref=K7M2XQ4P",
    "referral_count": 3,
    "earnings": [{"currency": "EUR", "amount": 1490}],
    "payout_status": "pending",
    "created_at": "2026-11-20T09:00:00Z",
}
_NEW_AFFILIATE_EXAMPLE: AffiliateState = {**_AFFILIATE_EXAMPLE, "referral_count": 0, "earnings": [], "payout_status": "no_earnings"}


@operation(
    "GET",
    "/v1/affiliates/me",
    title="Get affiliate status",
    examples=[Example("What has our link brought?", {}, _AFFILIATE_EXAMPLE)],
)
async def affiliates_me_get(ctx: Ctx, _params: Nothing) -> AffiliateState:
    """Get your referral link, how many it brought, and what that earned.

    Before your organisation joins, `joined` is false and `code` and `link` are null: affiliates_me_create joins.

    A commission is 10 % of the platform fees of an organisation that you referred, for twelve months. `earnings` are all
    commissions so far, in minor units by currency. Payouts are made by whoever runs the service: nothing is paid automatically,
    so `payout_status` is `pending` as long as there are earnings, `no_earnings` before, and `not_joined` outside the programme.
    """
    return await ctx.deps.store.read(_affiliate_state, organisation=ctx.organisation, deps=ctx.deps)


@operation(
    "POST",
    "/v1/affiliates/me",
    spends=SpendKind.NOTHING,
    scope=Scope.ANY,
    status=201,
    also=200,
    title="Join affiliate programme",
    examples=[Example("Join the programme", {}, _NEW_AFFILIATE_EXAMPLE)],
)
async def affiliates_me_create(ctx: Ctx, _params: Nothing) -> AffiliateState:
    """Join the affiliate programme and get your organisation's referral code.

    Safe to repeat: an organisation has one code for ever, and a later call answers 200 with it.

    Hand out `link`: whoever signs up with it is referred by you. The code has 8 characters without 0, O, 1 and I, and upper and
    lower case are the same. Joining costs nothing and obliges to nothing.
    """
    deps = ctx.deps

    def write(connection: Connection, *, organisation: str, now: float, ids: Ids) -> AffiliateState:
        _, new = join_affiliates(connection, organisation=organisation, now=now, ids=ids)
        ctx.status = 201 if new else 200
        return _affiliate_state(connection, organisation=organisation, deps=deps)

    return await ctx.settle_result(write, organisation=ctx.organisation, now=ctx.now, ids=deps.ids)


def _affiliate_state(connection: Connection, *, organisation: str, deps: Deps) -> AffiliateState:
    affiliate, earnings = affiliate_of(connection, organisation=organisation), earned_totals(connection, affiliate=organisation)
    owed = any(sum.amount > 0 for sum in earnings)
    return {
        "object": "affiliate",
        "joined": affiliate is not None,
        "code": None if affiliate is None else affiliate.code,
        "link": None if affiliate is None else _referral_link(affiliate.code, deps),
        "referral_count": count_referrals(connection, affiliate=organisation),
        "earnings": [{"currency": sum.currency, "amount": sum.amount} for sum in earnings],
        "payout_status": "not_joined" if affiliate is None else "pending" if owed else "no_earnings",
        "created_at": None if affiliate is None else rfc3339_utc(affiliate.created),
    }


def _referral_link(code: str, deps: Deps) -> str:
    """Where whoever is referred signs up.

    Choice: where people sign in at a provider of the deployment's own, its sign-in page gets the code as `ref`; whoever comes back from
    there with it calls POST /v1/affiliates/link.
    """
    if deps.own_identity:
        return f"{deps.site.base_url}/auth/sign-up?ref={code}"
    page = urlsplit(deps.site.sign_in_url)
    return page._replace(query=urlencode([*parse_qsl(page.query, keep_blank_values=True), ("ref", code)])).geturl()


# Case 43 of the threat model: an organisation that is exactly as old as this is too old.
_REFERRAL_LINK_SECONDS = 1800


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


_AFFILIATE_LINK_EXAMPLE: AffiliateLink = {
    "object": "affiliate_link",
    "organization_id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "referral_code": "K7M2XQ4P",
    "linked_at": "2026-11-20T09:00:00Z",
}


# Choice: for admins, since a referral is for ever; who has just signed up is the admin.
@operation(
    "POST",
    "/v1/affiliates/link",
    spends=SpendKind.NOTHING,
    irreversible=True,
    auth=Auth.SESSION,
    scope=Scope.NONE,
    role=Role.ADMIN,
    title="Attach referral code",
    raises=[BadRequest, Conflict],
    examples=[Example("We came by somebody's link", {"referral_code": "K7M2XQ4P"}, _AFFILIATE_LINK_EXAMPLE)],
)
async def affiliates_link(ctx: Ctx, params: ReferralCode) -> AffiliateLink:
    """Say whose referral link brought your new organisation.

    Only within 30 minutes of the organisation's creation, once, by an admin who is signed in: an API key is refused.

    The same code again gives the same answer, at any time; another one is 409 `already_referred`. A code of your own organisation,
    or of one that you or another member belongs to, is refused.
    """
    require_scope(Scope.ANY, ctx.caller, ctx.deps.site)  # a login that was only let read changes nothing
    organisation, person, now = ctx.organisation, ctx.caller.principal, ctx.now

    def link(connection: Connection) -> AffiliateLink:
        """Attaches the code, unless the organisation is too old; answers alike where it was attached before."""
        if referral_of(connection, organisation=organisation) is None:
            _check_organisation_age(organisation_created(connection, organisation=organisation), now)
        outcome = attach_referral(connection, organisation=organisation, person=person, code=params.referral_code, now=now)
        referral = referral_of(connection, organisation=organisation)
        if outcome != "attached" or referral is None:
            raise _referral_not_attached(outcome)
        linked = rfc3339_utc(referral.created)
        return {"object": "affiliate_link", "organization_id": organisation, "referral_code": referral.code, "linked_at": linked}

    return await ctx.settle_result(link)


def _check_organisation_age(created: int | None, now: float) -> None:
    """Refuse an organisation that is not new. Its age counts from the whole second in which it was made."""
    if created is None or now - created >= _REFERRAL_LINK_SECONDS:
        raise BadRequest(
            f"Your organisation was created at {rfc3339_utc(created or 0)}, and a referral code can only be attached in the first "
            f"{_REFERRAL_LINK_SECONDS // 60} minutes of an organisation",
            code="referral_too_late",
            param="referral_code",
            hint="Nothing can be done about it now; whoever signs up by a referral link is referred at once",
        )


def _referral_not_attached(outcome: str) -> BadRequest:
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


class CommissionOfMonth(TypedDict):
    """The share of one referred organisation's platform fees of one month; amounts in minor units of `currency`.

    `period` is a calendar month in UTC, `YYYY-MM`; `rate_bps` is in hundredths of a percent.
    """

    # Choice: a referred organisation is named by its id, which tells months of one apart from those of another and nothing else.
    id: str
    object: Literal["commission"]
    period: str
    organization: str
    currency: str
    platform_fees: int
    amount: int
    rate_bps: int


_COMMISSION_EXAMPLE: CommissionOfMonth = {
    "id": "com_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "object": "commission",
    "period": "2026-11",
    "organization": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "currency": "EUR",
    "platform_fees": 14900,
    "amount": 1490,
    "rate_bps": RATE_BPS,
}


@operation(
    "GET",
    "/v1/affiliates/me/commissions",
    title="List commissions",
    raises=[BadRequest],
    examples=[Example("What did each month earn?", {}, {"object": "list", "data": [_COMMISSION_EXAMPLE], "has_more": False})],
)
async def affiliates_me_commissions_list(ctx: Ctx, params: ListPage) -> ListOf[CommissionOfMonth]:
    """List the commissions your organisation earned, newest month first.

    One row per month, referred organisation and currency; `amount` is 10 % of `platform_fees`, rounded half up.

    A referred organisation earns you a commission in the month in which it was referred and in the eleven after it. A month's row
    grows until its invoices are final, and shrinks when a fee is taken back, never below zero.
    """
    rows = await ctx.deps.store.read(
        _read_commissions, affiliate=ctx.organisation, starting_after=params.starting_after, most=params.limit + 1
    )
    return list_page([_commission_of_month(row) for row in rows], params.limit)


def _read_commissions(connection: Connection, *, affiliate: str, starting_after: str | None, most: int) -> list[Commission]:
    after = LAST_COMMISSION_PLACE
    if starting_after is not None:
        after = commission_place(connection, affiliate=affiliate, commission=starting_after)
    if after is None:
        raise unknown_last_id("commission")
    return list_commissions(connection, affiliate=affiliate, after=after, most=most)


def _commission_of_month(row: Commission) -> CommissionOfMonth:
    named = {"period": row.month, "organization": row.organisation, "platform_fees": row.fees}
    return render_fields(row, CommissionOfMonth, object="commission", rate_bps=RATE_BPS, **named)
