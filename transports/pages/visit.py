"""One request to a page: who sits before the browser, what they sent, and which cookies the answer sets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from operations.services.people import browser_sessions
from operations.services.people.browser_sessions import COOKIE, Record, SignedIn
from operations.services.secret_token import new_token
from registry.caller import Caller
from registry.errors import Conflict
from registry.ports import Line
from transports.pages.answers import Redirect
from transports.pages.csrf import FIELD, refuse
from transports.pages.desk import Desk
from transports.pages.next_page import CARRIED, HOME, next_page

VISITOR_SECONDS = 86_400


@dataclass(slots=True)
class Visit:
    """A request, read and told apart. `path` is what follows /auth."""

    desk: Desk
    path: str
    query: Mapping[str, str]
    cookies: Mapping[str, str]
    client: str
    request_id: str
    now: float
    started: float
    form: Mapping[str, str] = field(default_factory=dict[str, str])
    session: SignedIn | None = None
    caller: Caller | None = None
    setting: dict[str, str] = field(default_factory=dict[str, str])
    """Set-Cookie headers by the cookie's name."""
    _visitor: str = ""

    async def recognise(self) -> None:
        """Who presents the session's cookie, as our store knows them now."""
        presented = self.cookies.get(self.desk.cookies.session, "")
        self.session = await browser_sessions.find(self.desk.deps, cookie=presented, now=self.now)
        if self.session is not None:
            self.caller = await self.desk.directory.signed_in(self.session.person, self.session.organisation)

    @property
    def who(self) -> SignedIn:
        """The signed-in person, at a page that has asked for one."""
        assert self.session is not None, "the router lets nobody else in"
        return self.session

    @property
    def acting(self) -> Caller:
        """The signed-in person and their organisation, as the pipeline takes them."""
        assert self.caller is not None, "the router lets nobody else in"
        return self.caller

    @property
    def organisation(self) -> str:
        """The organisation that this page is about."""
        if not self.acting.organisation:
            raise Conflict("You belong to no organisation yet", hint="Sign up to make one, or ask a colleague to invite you")
        return self.acting.organisation

    @property
    def visitor(self) -> str:
        """The cookie of a browser that nobody is signed in with; it is given one when a form is shown to it."""
        cookies = self.desk.cookies
        presented = self._visitor or self.cookies.get(cookies.visitor, "")
        if not COOKIE.fullmatch(presented):
            presented = new_token(self.desk.deps.ids)
            self.setting[cookies.visitor] = cookies.given(cookies.visitor, presented, VISITOR_SECONDS)
        self._visitor = presented
        return presented

    @property
    def bound_to(self) -> str:
        """What a form that is shown now is bound to: this sign-in, or this browser."""
        return f"session|{self.session.cookie}" if self.session is not None else f"visitor|{self.visitor}"

    def csrf(self) -> str:
        """The token of a form on a page that is shown now."""
        return self.desk.seals.make("form", self.bound_to)

    def check_form(self) -> None:
        """Refuse a form whose token is not that of this sign-in or this browser."""
        anonymous = self.session is None and not COOKIE.fullmatch(self.cookies.get(self.desk.cookies.visitor, ""))
        if anonymous or not self.desk.seals.good(self.form.get(FIELD, ""), "form", self.bound_to):
            refuse()

    def record(self, operation: str, *, person: str = "") -> Record:
        """Makes the audit row of what is done without an operation. No address, no code, no argument."""
        clock, principal = self.desk.pipeline.clock, person or self.who.person

        def line(organisation: str) -> Line:
            milliseconds = round((clock.monotonic() - self.started) * 1000, 3)
            return Line(self.now, organisation, "web", operation, principal, "", "ok", 200, milliseconds, self.request_id)

        return line

    def slip_names(self) -> list[str]:
        """The names of the cookies of requests whose codes are in the mail."""
        return [name for name in self.cookies if name.startswith(self.desk.cookies.slip)]

    async def sign_in(self, person: str, *, organisation: str | None = None) -> None:
        """A new session in a new cookie; whatever this browser presented before ends or is forgotten."""
        cookies, deps = self.desk.cookies, self.desk.deps
        cookie = await browser_sessions.start(
            deps,
            person=person,
            now=self.now,
            organisation=organisation,
            instead_of=self.session,
            record=self.record("sign_in", person=person),
        )
        self.setting[cookies.session] = cookies.given(cookies.session, cookie, browser_sessions.LIFETIME)
        self.forget(cookies.visitor, *self.slip_names())

    def forget(self, *names: str) -> None:
        """Take cookies away."""
        for name in names:
            self.setting[name] = self.desk.cookies.taken(name)

    def to_sign_in(self) -> Redirect:
        """Whoever is not signed in signs in first, and comes back to this page."""
        given = {**self.form, **self.query}
        kept = next((names for names in CARRIED if all(given.get(name) for name in names)), ())
        back = next_page(f"/auth{self.path}" + ("?" if kept else "") + "&".join(f"{name}={given[name]}" for name in kept))
        return Redirect("/sign-in" if back == HOME else f"/sign-in?next=/auth{quote(back)}")
