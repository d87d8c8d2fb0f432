"""The login that stands in for a key, renewed where it runs out."""

from clients.http import Outbound
from registry.clock import Clock
from transports.cli.authority import Tokens, post, read_as, refusal_of, told
from transports.cli.credentials import Login, name_of, opened, read
from transports.cli.failure import Failure, Unreachable

ENDED = ("invalid_grant", "invalid_client")


async def stored_token(url: str, clock: Clock) -> str | None:
    """The access token of the login at a server; nothing without a login."""
    name = name_of(url)
    found = read().get(name)
    if found is None or found.lasts(clock):
        return found and found.access_token
    async with opened() as logins:
        found = logins.get(name)
        if found is None or found.lasts(clock):  # another command was faster
            return found and found.access_token
        fresh = await renewed(found, clock)
        if fresh is None:
            del logins[name]
        else:
            logins[name] = fresh
    if fresh is None:
        raise Failure(f"the login at {name} has ended; log in again with `reseller login --url {name}`, or use --key", exit_code=1)
    return fresh.access_token


async def renewed(login: Login, clock: Clock) -> Login | None:
    """The login with new tokens; None when it is over. Whatever else goes wrong may go right the next time, so it is kept then."""
    if not login.refresh_token:
        return None
    form = {"grant_type": "refresh_token", "refresh_token": login.refresh_token, "client_id": login.client_id}
    outbound = Outbound()
    try:
        answer = await post(outbound, login.token_endpoint, form)
    finally:
        await outbound.aclose()
    tokens = read_as(answer, Tokens) if answer.status == 200 else None
    if tokens is not None:
        return login.model_copy(update=lasting(tokens, clock) | ({} if tokens.refresh_token else {"refresh_token": login.refresh_token}))
    if refusal_of(answer).error in ENDED:
        return None
    raise Unreachable(f"the login could not be renewed: {told(answer)}; try again", exit_code=3)


def lasting(tokens: Tokens, clock: Clock) -> dict[str, object]:
    """What is kept of an answer of the token endpoint."""
    return {
        "access_token": tokens.access_token,
        "refresh_token": tokens.refresh_token,
        "expires_at": clock.now() + tokens.expires_in,
    }
