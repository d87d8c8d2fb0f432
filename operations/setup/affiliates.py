"""The affiliate programme, as the organisation that is in it sees it."""

from typing import Literal
from urllib.parse import parse_qsl, urlencode, urlsplit

from typing_extensions import TypedDict

from operations.deps import Ctx, Deps
from operations.services.people.referrals import take_in
from registry.ids import Ids
from registry.limits import Scope
from registry.model import Nothing
from registry.operation import Example, operation
from registry.policy import stamp
from storage.connection import Connection
from storage.money.commissions import Earned, earned
from storage.people.affiliates import Affiliate, affiliate_of, count_referrals


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


EXAMPLE: AffiliateState = {
    "object": "affiliate",
    "joined": True,
    "code": "K7M2XQ4P",
    "link": "https://reseller.example.com/auth/sign-up?ref=K7M2XQ4P",
    "referral_count": 3,
    "earnings": [{"currency": "EUR", "amount": 1490}],
    "payout_status": "pending",
    "created_at": "2026-11-20T09:00:00Z",
}
NEW: AffiliateState = {**EXAMPLE, "referral_count": 0, "earnings": [], "payout_status": "no_earnings"}


class Standing(TypedDict):
    """What the database knows of an affiliate."""

    affiliate: Affiliate | None
    referrals: int
    earnings: list[Earned]


@operation(
    "GET",
    "/v1/affiliates/me",
    title="Get affiliate status",
    examples=[Example("What has our link brought?", {}, EXAMPLE)],
)
async def affiliates_me_get(ctx: Ctx, params: Nothing) -> AffiliateState:
    """Get your referral link, how many it brought, and what that earned.

    Before your organisation joins, `joined` is false and `code` and `link` are null: affiliates_me_create joins.

    A commission is 10 % of the platform fees of an organisation that you referred, for twelve months. `earnings` are all
    commissions so far, in minor units by currency. Payouts are made by whoever runs the service: nothing is paid automatically,
    so `payout_status` is `pending` as long as there are earnings, `no_earnings` before, and `not_joined` outside the programme.
    """
    del params
    return state_of(await ctx.deps.store.read(standing, organisation=ctx.organisation), ctx.deps)


@operation(
    "POST",
    "/v1/affiliates/me",
    scope=Scope.ANY,
    status=201,
    also=200,
    title="Join affiliate programme",
    examples=[Example("Join the programme", {}, NEW)],
)
async def affiliates_me_create(ctx: Ctx, params: Nothing) -> AffiliateState:
    """Join the affiliate programme and get your organisation's referral code.

    Safe to repeat: an organisation has one code for ever, and a later call answers 200 with it.

    Hand out `link`: whoever signs up with it is referred by you. The code has 8 characters without 0, O, 1 and I, and upper and
    lower case are the same. Joining costs nothing and obliges to nothing.
    """
    del params
    deps = ctx.deps

    def write(connection: Connection, *, organisation: str, now: float, ids: Ids) -> AffiliateState:
        _, new = take_in(connection, organisation=organisation, now=now, ids=ids)
        ctx.status = 201 if new else 200
        return state_of(standing(connection, organisation=organisation), deps)

    return await ctx.settle_result(write, organisation=ctx.organisation, now=ctx.now, ids=deps.ids)


def standing(connection: Connection, *, organisation: str) -> Standing:
    """Everything there is to say about the organisation as an affiliate."""
    return {
        "affiliate": affiliate_of(connection, organisation=organisation),
        "referrals": count_referrals(connection, affiliate=organisation),
        "earnings": earned(connection, affiliate=organisation),
    }


def state_of(known: Standing, deps: Deps) -> AffiliateState:
    """The answer."""
    affiliate, earnings = known["affiliate"], known["earnings"]
    owed = any(sum.amount > 0 for sum in earnings)
    return {
        "object": "affiliate",
        "joined": affiliate is not None,
        "code": None if affiliate is None else affiliate.code,
        "link": None if affiliate is None else link_with(affiliate.code, deps),
        "referral_count": known["referrals"],
        "earnings": [{"currency": sum.currency, "amount": sum.amount} for sum in earnings],
        "payout_status": "not_joined" if affiliate is None else "pending" if owed else "no_earnings",
        "created_at": None if affiliate is None else stamp(affiliate.created),
    }


def link_with(code: str, deps: Deps) -> str:
    """Where whoever is referred signs up.

    Choice: where people sign in at a provider of the deployment's own, its sign-in page gets the code as `ref`; whoever comes back from
    there with it calls POST /v1/affiliates/link.
    """
    if deps.own_identity:
        return f"{deps.site.base_url}/auth/sign-up?ref={code}"
    page = urlsplit(deps.site.sign_in_url)
    return page._replace(query=urlencode([*parse_qsl(page.query, keep_blank_values=True), ("ref", code)])).geturl()
