"""The way in for accounts that exist already (OAuth 2.0), and the way out."""

from clients.sandbox.payments.call import Call
from clients.sandbox.payments.form import Form
from clients.sandbox.payments.onboarding import attach, release_account
from clients.sandbox.payments.refusal import Members, OAuthRefusal, Refusal

CODE_SECONDS = 300


def token(call: Call, form: Form) -> Members:
    """Change a code for access, once."""
    grant, code = form.raw("grant_type"), form.raw("code")
    if grant not in ("authorization_code",):
        said = "No grant type specified" if grant is None else f"Unsupported grant type: {grant}"
        raise OAuthRefusal("invalid_request" if grant is None else "unsupported_grant_type", said)
    if not code:
        raise OAuthRefusal("invalid_request", "No authorization code provided")
    row = call.state.codes.get(code)
    if row is None:
        raise OAuthRefusal("invalid_grant", f"Authorization code does not exist: {code}")
    if row.used:
        raise OAuthRefusal(
            "invalid_grant", f"This authorization code has already been used. All tokens issued with this code have been revoked: {code}"
        )
    if row.created + CODE_SECONDS <= call.state.now():
        raise OAuthRefusal("invalid_grant", f"Authorization code expired: {code}")
    row.used = True
    attach(call.state, row.account)
    mode = "live" if call.state.live else "test"
    return {
        "access_token": call.state.new_id(f"sk_{mode}_"),
        "livemode": call.state.live,
        "refresh_token": call.state.new_id("rt_"),
        "scope": row.scope,
        "stripe_publishable_key": call.state.new_id(f"pk_{mode}_"),
        "stripe_user_id": row.account,
        "token_type": "bearer",
    }


def deauthorize(call: Call, form: Form) -> Members:
    """Let an account go."""
    client, account = form.raw("client_id"), form.raw("stripe_user_id")
    if not client:
        raise OAuthRefusal("invalid_request", "No client_id specified")
    if not account:
        raise OAuthRefusal("invalid_request", "No stripe_user_id specified")
    try:
        release_account(call.state, account)
    except Refusal as refused:
        raise OAuthRefusal("invalid_client", refused.message, 401) from refused
    return {"stripe_user_id": account}
