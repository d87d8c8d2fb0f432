"""Who calls: the token of the query or of the Authorization header."""

from collections.abc import Mapping
from urllib.parse import parse_qs

from clients.sandbox.ocs.entities import Refused, Token
from clients.sandbox.ocs.state import World

NO_ACCOUNT, ADDRESS_NOT_ALLOWED = 8, 9
SCHEMES = ("bearer", "token")


def caller_of(world: World, query: str, headers: Mapping[str, str], client: str) -> Token:
    """The token's record; the query wins over the header."""
    token = world.tokens.get(given_token(query, headers))
    if token is None:
        raise Refused(NO_ACCOUNT, "no API account for this token")
    if token.addresses and client not in token.addresses:
        raise Refused(ADDRESS_NOT_ALLOWED, "source address not authorised")
    return token


def given_token(query: str, headers: Mapping[str, str]) -> str:
    """The token as it came, or nothing."""
    found = parse_qs(query).get("token")
    if found:
        return found[0]
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() in SCHEMES else ""
