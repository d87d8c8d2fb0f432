"""Who may push: a signature, the internal key, or the bridge's secret in the address. Without a secret nobody may."""

from urllib.parse import parse_qs

from clients.webhooks.signature import BadSignature, verify
from operations.deps import Deps
from registry import policy
from registry.call import Call
from registry.caller import BRIDGE, Caller
from registry.errors import Unauthorized

SIGNATURE, ID, TOKEN = "webhook-signature", "webhook-id", "token"
HINT = (
    "Sign with SERVICE_BRIDGE_WEBHOOK_SECRET (Standard Webhooks), or send SERVICE_INTERNAL_API_KEY as Authorization: Bearer,"
    " or put ?token=<SERVICE_BRIDGE_WEBHOOK_SECRET> into the address"
)


async def prove_sender(deps: Deps, call: Call, now: float) -> Caller:
    """The bridge, or a 401. Only a signed body is read before its sender is known, since the signature is over it.

    Choice: a signature that is there decides alone; a good key beside a bad signature is still refused.
    """
    if SIGNATURE in call.headers:
        await check_signature(call, deps.secrets.bridge, now)
    else:
        check_secret(call, deps)
    return BRIDGE


async def check_signature(call: Call, secret: str, now: float) -> None:
    """Standard Webhooks, over the bytes as they came."""
    if not secret.strip():
        raise refused("Signed notifications are not accepted here: no secret is set")
    try:
        verify([secret], call.headers, await call.body(), now)
    except BadSignature as bad:
        raise refused(bad.reason) from None
    except ValueError:  # whoever runs the service chose a secret that is no base64; it is not repeated
        raise refused("Signatures cannot be verified here: SERVICE_BRIDGE_WEBHOOK_SECRET must be base64, with or without whsec_") from None


def check_secret(call: Call, deps: Deps) -> None:
    """The internal key as bearer, or the bridge's secret in the address, where the internal key never counts."""
    bearer = policy.matches(call.credential, deps.secrets.internal)
    address = policy.matches(token_in(call.query), deps.secrets.bridge)
    if not (bearer or address):
        raise refused("The notification carries no credential that is accepted here", presented=call.credential is not None)


def token_in(query: str) -> str | None:
    """The one token of the address; two are none, since another reader might see the other."""
    try:
        found = parse_qs(query, max_num_fields=100).get(TOKEN, [])
    except ValueError:
        return None
    return found[0] if len(found) == 1 else None


def refused(message: str, *, presented: bool = True) -> Unauthorized:
    """401, with the ways to do it right."""
    return Unauthorized(message, presented=presented, hint=HINT)
