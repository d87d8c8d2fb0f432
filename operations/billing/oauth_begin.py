"""Connecting an account that an organisation has at the payment processor already (OAuth 2.0): the way there."""

import hashlib
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.payments.return_url import ReturnUrl, own_page
from operations.services.secret_token import new_token
from registry.errors import NotSupported
from registry.limits import Scope
from registry.model import Input
from registry.operation import Example, operation
from storage.money.connect_states import ConnectState, insert_state

STATE_SECONDS = 600


class Consent(Input):
    """Where to come back to."""

    return_url: Annotated[
        ReturnUrl | None,
        Field(
            repr=False,
            description="Page to come back to with `code` and `state`; https, and registered at the processor. Absent: one of ours.",
        ),
    ] = None


class ConsentBegun(TypedDict):
    """Open `url` in a browser; `state` comes back with the code and is good once, until `expires_at` (Unix seconds)."""

    url: str
    state: str
    expires_at: int


async def whoever_asks(ctx: Ctx, params: Consent) -> str:
    """Whose the state is."""
    del params
    ctx.answers_caller_alone()
    return ctx.caller.principal


@operation(
    "POST",
    "/v1/operator-billing/connect/oauth/begin",
    scope=Scope.WRITE,
    title="Begin OAuth connection",
    access=whoever_asks,
    raises=[NotSupported],
    examples=[
        Example(
            "We have an account at the processor already",
            {},
            {
                "url": "https://connect.processor.example/oauth/authorize?response_type=code&client_id=ca_R8&scope=read_write&state=rG3v...",
                "state": "rG3vJq0sYbX1mT9kD4wZ7uHc2eLfP6aNi8oVxQyRtKE",
                "expires_at": 1795165500,
            },
        )
    ],
)
async def operator_billing_connect_oauth_begin(ctx: Ctx, params: Consent, person: str) -> ConsentBegun:
    """Begin to connect a Standard account that you have at the processor.

    Have the account's owner open `url` and consent; the browser comes back with `code` and `state`, which
    operator_billing_connect_oauth_complete takes.

    `state` is good for 10 minutes, once, and for whoever began it alone. Where the service has no client id for OAuth the answer is 501;
    operator_billing_connect_begin makes an account then.
    """
    deps = ctx.deps
    state = new_token(deps.ids)
    url = deps.payments.authorize_url(state=state, return_url=params.return_url or own_page(deps))
    if url is None:
        raise NotSupported(
            "This service has no client id for OAuth at the payment processor, so accounts of your own cannot be connected",
            hint="POST /v1/operator-billing/connect/begin makes an account; the client id is SERVICE_PAYMENTS_CLIENT_ID",
        )
    row = ConnectState(digest_of(state), ctx.organisation, person, ctx.now + STATE_SECONDS)
    return await ctx.settle({"url": url, "state": state, "expires_at": int(row.expires_at)}, insert_state, state=row)


def digest_of(state: str) -> str:
    """What of a state is stored."""
    return hashlib.sha256(state.encode()).hexdigest()
