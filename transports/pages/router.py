"""Which page answers which path, and who may open it."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from transports.pages import (
    account,
    affiliates,
    api_keys,
    audit,
    consent,
    home,
    members,
    onboarding,
    payments,
    session_token,
    sign_in,
    sign_out,
    sign_up,
    upgrade,
)
from transports.pages.answers import Answer
from transports.pages.visit import Visit

Handler = Callable[[Visit], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Route:
    """A page: how it is shown, what its forms do, and whether one must be signed in."""

    show: Handler | None
    act: Handler | None = None
    private: bool = True

    @property
    def methods(self) -> str:
        """What the path takes, as Allow says it."""
        return ", ".join((*(("GET", "HEAD") if self.show else ()), *(("POST",) if self.act else ())))


ROUTES: Mapping[str, Route] = {
    "": Route(home.show, private=False),
    "/sign-up": Route(sign_up.show, sign_up.start, private=False),
    "/sign-up/code": Route(sign_up.show_code, sign_up.finish, private=False),
    "/sign-in": Route(sign_in.show, sign_in.start, private=False),
    "/sign-in/code": Route(sign_in.show_code, sign_in.finish, private=False),
    "/sign-out": Route(None, sign_out.here),
    "/sign-out/everywhere": Route(None, sign_out.everywhere),
    "/account": Route(account.show, account.act),
    "/invitations": Route(account.invitations),
    "/onboarding": Route(onboarding.show, onboarding.act),
    "/api-keys": Route(api_keys.show, api_keys.act),
    "/members": Route(members.show, members.act),
    "/affiliates": Route(affiliates.show, affiliates.act),
    "/payments": Route(payments.show, payments.act),
    "/audit": Route(audit.show),
    "/session-token": Route(session_token.show, session_token.make),
    "/upgrade": Route(upgrade.show, private=False),
    "/consent": Route(consent.show, consent.act),
}
