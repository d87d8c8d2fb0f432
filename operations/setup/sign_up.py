"""Signing up: an organisation for whoever reads the mail of an address."""

import json
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.letters import queue_letter, seal_letter
from operations.people.organisation_events import log_member_added
from operations.people.verifications import MAILED_CODE_SECONDS, new_mailed_code, prove_mailed_code, sign_up_letter, wrong_mailed_code
from operations.setup.affiliates import attach_referral, is_referral_code
from operations.vocabulary import Email, mailbox_of, normal_email, plain_line
from registry.caller import Role
from registry.errors import BadRequest, QuotaExceeded
from registry.free_text import FreeText
from registry.operation import Auth, Example, Input, Scope, SpendKind, operation
from registry.rate_limits import address_network
from storage.allowances import allowance_for, spend_allowances
from storage.engine.sql import Connection
from storage.organisations import add_member, create_organisation
from storage.people import ensure_person
from storage.verifications import insert_verification, use_verification

SIGN_UPS_PER_ADDRESS, SIGN_UPS_PER_NETWORK = 3, 5
SignUpName = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(plain_line)]


class NewSignUp(Input):
    """Who signs up, and what for."""

    email: Email
    organization_name: Annotated[SignUpName, Field(description="Name of the organization, 1-200 characters.")]
    name: Annotated[SignUpName | None, Field(description="Your name, 1-200 characters.")] = None
    referral_code: Annotated[
        str | None, Field(min_length=1, max_length=32, description="Code of the affiliate who sent you, 8 characters.")
    ] = None


class SignUpStarted(TypedDict):
    """A code is in the mail; `client_token` is half of the proof, the code the other."""

    client_token: str
    expires_in_seconds: int


class Proof(Input):
    """The token of the sign-up, and the code from the mail."""

    client_token: Annotated[str, Field(min_length=1, max_length=128, description="From the answer of signup_start.")]
    code: Annotated[str, Field(min_length=1, max_length=64, description="The six digits from the mail.")]


ReferralOutcome = Literal["attached", "self", "unknown"]


class SignedUp(TypedDict):
    """The new organization. `referral`: what became of the code, null where none was given."""

    object: Literal["organization"]
    organization_id: str
    name: FreeText
    referral: ReferralOutcome | None
    sign_in_url: str


class SignUpDetails(TypedDict):
    """What a sign-up remembers until its code comes."""

    organization_name: str
    name: str | None
    referral_code: str | None


_SIGN_UP_TOKEN_EXAMPLE = "Jb1oVvYw0k2cX4b8G0m9y1nqT7sZ5dL3rQ6uE8hA2fM"
_SIGN_UP_STARTED_EXAMPLE: SignUpStarted = {"client_token": _SIGN_UP_TOKEN_EXAMPLE, "expires_in_seconds": MAILED_CODE_SECONDS}
_SIGNED_UP_EXAMPLE: SignedUp = {
    "object": "organization",
    "organization_id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
    "name": "Fjord Mobile",
    "referral": None,
    "sign_in_url": "https://esim.example/auth/sign-in",
}


@operation(
    "POST",
    "/v1/signup",
    spends=SpendKind.NOTHING,
    scope=Scope.NONE,
    auth=Auth.PUBLIC,
    status=201,
    tool=False,
    title="Start sign-up",
    raises=[BadRequest, QuotaExceeded],
    examples=[
        Example(
            "A new reseller",
            {"email": "ada@fjord.example", "organization_name": "Fjord Mobile", "name": "Ada Berg"},
            _SIGN_UP_STARTED_EXAMPLE,
        ),
    ],
)
async def signup_start(ctx: Ctx, params: NewSignUp) -> SignUpStarted:
    """Start a sign-up: a code is mailed to the address.

    Send the code with `client_token` to signup_verify within 10 minutes. No credential is needed for either.

    The answer and the mail are the same whether or not the address is known: somebody who has an account gets one more organization.
    Five sign-ups an hour are allowed from one network (an IPv6 /64) and three for one address; beyond that the answer is 429
    `rate_limited`. An unknown `referral_code` is refused here, so that it can be mended before the code is mailed.
    """
    deps, now, address = ctx.deps, ctx.now, normal_email(params.email)
    if params.referral_code is not None and not await deps.store.read(is_referral_code, code=params.referral_code):
        raise BadRequest(
            "referral_code: no affiliate has this code", param="referral_code", hint="Check it for typing errors, or leave it out"
        )
    details: SignUpDetails = {"organization_name": params.organization_name, "name": params.name, "referral_code": params.referral_code}
    mailed = new_mailed_code(deps.ids, purpose="sign_up", address=address, details=json.dumps(details), now=now)
    letter = sign_up_letter(address, mailed.code, deps.site.base_url)
    answer: SignUpStarted = {"client_token": mailed.token, "expires_in_seconds": MAILED_CODE_SECONDS}
    wanted = [
        allowance_for("sign_up_address", mailbox_of(address), SIGN_UPS_PER_ADDRESS),
        allowance_for("sign_up_network", address_network(ctx.call.client), SIGN_UPS_PER_NETWORK),
    ]
    mail = seal_letter(letter, ids=deps.ids, keyring=deps.keyring, expires_at=now + MAILED_CODE_SECONDS)

    def queue_mail(connection: Connection) -> None:
        """Counts the sign-up, stores it and queues the mail, without looking up whose the address is."""
        spend_allowances(connection, wanted=wanted, what="sign-ups", upgrade_url=deps.site.upgrade_url, now=now)
        insert_verification(connection, verification=mailed.verification)
        queue_letter(connection, mail, deps.clock)

    await ctx.settle(answer, queue_mail)
    deps.post()
    return answer


@operation(
    "POST",
    "/v1/signup/verify",
    spends=SpendKind.NOTHING,
    scope=Scope.NONE,
    auth=Auth.PUBLIC,
    status=201,
    tool=False,
    title="Finish sign-up",
    raises=[BadRequest],
    examples=[Example("The code from the mail", {"client_token": _SIGN_UP_TOKEN_EXAMPLE, "code": "482913"}, _SIGNED_UP_EXAMPLE)],
)
async def signup_verify(ctx: Ctx, params: Proof) -> SignedUp:
    """Finish a sign-up with the mailed code: the organization is created.

    A wrong code is 400 `form_code_incorrect` and may be tried again, five tries in all. The answer holds no credential: sign in at
    `sign_in_url` with the address.

    The organization begins on the tier free, or another that the deployment says, and whoever reads the mail is its admin: the person of
    that address, or a new one. A code is good for 10 minutes, 5 tries and one organization; a token that is unknown, used or too old is
    answered like a wrong code. With your own `referral_code` the organization is created and `referral` is `self`; nobody is credited then.
    """
    deps = ctx.deps
    digest = await prove_mailed_code(deps, token=params.client_token, code=params.code, purpose="sign_up", now=ctx.now)
    organisation, new_person, now = deps.ids.new("org_"), deps.ids.new("usr_"), ctx.now

    def found_organisation(connection: Connection) -> SignedUp:
        """Uses the code up and founds the organisation; where two come with the right code at once, one of them does."""
        verified = use_verification(connection, digest=digest, purpose="sign_up", now=now)
        if verified is None:
            raise wrong_mailed_code()
        details = cast(SignUpDetails, json.loads(verified.details))
        name, code = details["organization_name"], details["referral_code"]
        person = ensure_person(connection, address=verified.address, id=new_person, name=details["name"], now=now)
        create_organisation(connection, id=organisation, name=name, tier=deps.signup_tier, now=now)
        add_member(connection, person=person, organisation=organisation, role=Role.ADMIN, now=now)
        log_member_added(connection, organisation=organisation, person=person, role=Role.ADMIN, ids=deps.ids, now=now)
        referral: ReferralOutcome | None = None
        if code is not None:
            referral = attach_referral(connection, organisation=organisation, person=person, code=code, now=now)
        return {
            "object": "organization",
            "organization_id": organisation,
            "name": name,
            "referral": referral,
            "sign_in_url": deps.site.sign_in_url,
        }

    return await ctx.settle_result(found_organisation)
