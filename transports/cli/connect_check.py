"""Whether a connection leads anywhere: `reseller org connect` and `assign` ask the charging system before they store one."""

import sys
from dataclasses import dataclass, field

from registry.errors import OcsError, Refusal
from transports.cli.failure import Failure
from transports.cli.upstream_check import accounts_of, fix_of, whose
from transports.settings import Settings
from transports.upstream import ocs_settings

TOKEN_REFUSED = 8
MOST_NAMED = 20
LONGEST_NAME = 60
SIMULATED = "without SERVICE_OCS_URL every process simulates a network of its own"
NO_TOKEN = "no managed account is reached before SERVICE_OCS_TOKEN is set"
WAY_OUT = "nothing was changed; --unchecked does it without asking"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an organisation is to be connected to: an account, the reseller of a token, or nothing."""

    account: int | None = None
    token: str | None = field(default=None, repr=False)


async def check(settings: Settings, wanted: Wanted) -> None:
    """Refuse what the charging system does not know. What cannot be asked here is told on stderr and taken as it is."""
    own = settings.ocs_token.get_secret_value()
    if not settings.ocs_url:
        sys.stderr.write(f"{subject(wanted)} was not checked: {SIMULATED}\n")
    elif wanted.token is not None:
        await check_token(settings, wanted.token)
    elif not own:
        sys.stderr.write(f"{subject(wanted)} was not checked: {NO_TOKEN}\n")
    else:
        await check_account(settings, own, wanted.account)


def subject(wanted: Wanted) -> str:
    """In words."""
    return "the token" if wanted.account is None else f"account {wanted.account}"


async def check_token(settings: Settings, token: str) -> None:
    """Whether it belongs to a reseller."""
    try:
        await whose(ocs_settings(settings), token)
    except Refusal as refusal:
        if isinstance(refusal, OcsError) and refusal.ocs_code == TOKEN_REFUSED:
            fix = "give the token that the provider gave the organisation, and see that SERVICE_OCS_AUTH is the way it takes it"
            raise Failure(f"standard input: {refusal.message} Fix: {fix}; {WAY_OUT}", exit_code=1) from None
        raise unasked(settings, refusal) from None


async def check_account(settings: Settings, token: str, account: int | None) -> None:
    """Whether the service's token sees the account."""
    try:
        known = await accounts_of(ocs_settings(settings), token)
    except Refusal as refusal:
        raise unasked(settings, refusal) from None
    if account not in known:
        raise Failure(f"--account {account}: SERVICE_OCS_TOKEN sees no such account, {listed(known)}; {WAY_OUT}", exit_code=1)


def unasked(settings: Settings, refusal: Refusal) -> Failure:
    """It did not answer as it should."""
    return Failure(f"{settings.ocs_url}: {refusal.message} Fix: {fix_of(refusal)}; {WAY_OUT}", exit_code=3)


def listed(known: dict[int, str]) -> str:
    """The accounts there are; names are the provider's words and are shown without what a terminal would obey."""
    if not known:
        return "nor any other"
    shown = [f"{id} ({''.join(c if c.isprintable() else '?' for c in name[:LONGEST_NAME])})" for id, name in known.items()][:MOST_NAMED]
    more = len(known) - len(shown)
    return f"only {', '.join(shown)}" + (f" and {more} more" if more else "")
