"""One request to a page: who sits before the browser, what they sent, which cookies the answer sets; and the answers a page can give."""

import base64
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from starlette.responses import Response

from operations.changes.approvals import RECENT_SIGN_IN_SECONDS
from operations.people import browser_sessions
from operations.people.browser_sessions import SESSION_COOKIE, AuditRecordMaker, BrowserSession
from operations.secret_tokens import new_secret_token
from registry.answer import FaultReport
from registry.call import Reply
from registry.caller import Caller, Role
from registry.errors import BadRequest, Conflict, Refusal
from registry.ports import AuditRecord
from storage.directory import StoreDirectory
from transports.http.concurrency import StreamSlots
from transports.web.pages.layout import pages_style, pages_templates
from transports.web.site import NO_HEADERS, SiteContext, Visit, page_response, refuse_form, see_other

if TYPE_CHECKING:
    from transports.service import Service


PROBLEM_WORDS: Mapping[str, tuple[str, str]] = {
    "role_required": ("Only admins of your organisation may do this", "Ask one of them; the page Members names them"),
    "organization_required": ("You belong to no organisation yet", "Sign up to make one, or ask a colleague to invite you"),
    "org_not_connected": ("Your organisation is not connected yet", "Connect it in step 2 of the page Set up"),
    "quota_exceeded": (
        "Your organisation has used up what it may do today",
        "It goes on at midnight UTC; the page Tiers shows larger ones",
    ),
    "upgrade_required": ("The tier or role that you have does not carry this", "The page Tiers shows which one does"),
}
"""Text and hint of refusals whose own words are for programs, by code."""
MORE_PROBLEMS = re.compile(r" \(and [0-9]+ more\)$")
BROKEN_PATTERN = re.compile(r"^got (.*); must match \^.*\$$")
FOR_PROGRAMS = re.compile(r"[a-z]+_[a-z]|/v1/|\b(?:HTTP|GET|POST|PUT|PATCH|DELETE|call)\b|`|\{\"")
"""What a hint for somebody before a page does not speak of: operations, requests, JSON, the command line."""


@dataclass(frozen=True, slots=True)
class PageProblem:
    """`field` is the one at fault, where it is one."""

    status: int
    text: str
    hint: str = ""
    field: str = ""
    code: str = ""


def problem_of(refusal: Refusal) -> PageProblem:
    """A refusal in the words of a page: beside its field, a text need not name it."""
    code, field = refusal.error_code, refusal.param or ""
    if code == "rate_limited":
        return PageProblem(refusal.status, f"Too many tries; try again in {waiting_time(int(refusal.headers['Retry-After']))}", code=code)
    if code in PROBLEM_WORDS:
        return PageProblem(refusal.status, *PROBLEM_WORDS[code], field, code)
    return worded_problem(refusal.status, code, field, refusal.message, refusal.hint or "")


def worded_problem(status: int, code: str, field: str, message: str, hint: str) -> PageProblem:
    """A problem without its field's name in the text, and without a pattern or a hint that only programs can follow."""
    text, more = MORE_PROBLEMS.subn("", message.removeprefix(f"{field}: ") if field else message)
    text = BROKEN_PATTERN.sub(r"\1 does not have the form that this field takes", text)
    hint = "" if FOR_PROGRAMS.search(hint) else hint
    if more:
        hint = f"{hint.removesuffix('.')}. Another field is to be mended, too".removeprefix(". ")
    return PageProblem(status, text[:1].upper() + text[1:], hint, field, code)


def problem_of_reply(reply: Reply, body: Mapping[str, object]) -> PageProblem | None:
    """Why a call was refused: now, or when it was made first and its refusal was stored as its answer. None where it was done."""
    if reply.refusal is not None:
        return problem_of(reply.refusal)
    if reply.status < 400:
        return None
    code, field, message, hint = (str(body.get(name) or "") for name in ("code", "param", "error", "hint"))
    return worded_problem(reply.status, code, field, message, hint)


def unknown_form() -> BadRequest:
    """The refusal of a form that is none of the page's."""
    return BadRequest("The form does not say what to do", hint="Use the buttons of this page")


def waiting_time(seconds: int) -> str:
    number, unit = (seconds, "second") if seconds < 60 else (-(-seconds // 60), "minute")
    return f"{number} {unit}" + ("s" if number > 1 else "")


HOME_PAGE = "/account"
OWN_PAGES = frozenset(
    {HOME_PAGE, "/onboarding", "/api-keys", "/members", "/payments", "/affiliates", "/audit", "/session-token", "/upgrade", "/consent"}
    | {"/invitations", "/approvals"}
)
# No dots, colons, backslashes, escapes or second slashes: nothing that a browser could read as another host or another folder.
QUERY_WORD = "[A-Za-z0-9_-]"
CARRIED_QUERY = (
    rf"(?:request|approval)={QUERY_WORD}{{1,200}}|code={QUERY_WORD}{{1,500}}&state={QUERY_WORD}{{1,100}}|error={QUERY_WORD}{{1,50}}"
)
OWN_PAGE_ADDRESS = re.compile(rf"/auth(/[a-z-]{{1,20}})(\?(?:{CARRIED_QUERY}))?", re.ASCII)
CONSOLE_PATH = "/console"
CONSOLE_ADDRESS = re.compile(rf"{CONSOLE_PATH}(?:/[A-Za-z0-9_-]{{1,100}}){{0,4}}(?:\?[A-Za-z0-9_=&%.:+-]{{1,600}})?", re.ASCII)
CARRIED_FIELDS = (("request",), ("approval",), ("code", "state"), ("error",))
"""What of a page's query is kept while somebody signs in: a program's request, an approval, what the payment processor leads back with."""


def next_page(wanted: str) -> str:
    """The page that was wanted, as `whole_path` takes it; the account's page instead of anything that is not plainly one of ours."""
    if CONSOLE_ADDRESS.fullmatch(wanted):
        return wanted
    found = OWN_PAGE_ADDRESS.fullmatch(wanted)
    return found[1] + (found[2] or "") if found is not None and found[1] in OWN_PAGES else HOME_PAGE


def whole_path(page: str) -> str:
    """The path of a page of ours: `page` is one of the console, or what follows /auth."""
    return page if CONSOLE_ADDRESS.fullmatch(page) else f"/auth{page}"


CSRF_FIELD = "csrf"


class FormSeals:
    """Keyed digests: the first key makes them, all of them check, so that a change of keys breaks no open page."""

    def __init__(self, keyring_text: str) -> None:
        """Replicas with one keyring make the same ones; nothing else uses these keys."""
        parts = [key.strip() for key in keyring_text.split(",") if key.strip()]
        self._keys: Sequence[bytes] = [hashlib.sha256(b"web-forms|" + part.encode()).digest() for part in parts]

    def make(self, purpose: str, text: str) -> str:
        return make_seal(self._keys[0], purpose, text)

    def good(self, given: str, purpose: str, text: str) -> bool:
        """Whether `given` is the seal of `text` for `purpose`, checked in constant time."""
        presented = hashlib.sha256(given.encode()).digest()
        checks = [hmac.compare_digest(presented, hashlib.sha256(make_seal(key, purpose, text).encode()).digest()) for key in self._keys]
        return any(checks)


def make_seal(key: bytes, purpose: str, text: str) -> str:
    """HMAC-SHA256 as text."""
    digest = hmac.digest(key, f"{purpose}|{text}".encode(), "sha256")
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")


class PageCookies:
    """Names and flags. The prefix __Host- makes browsers refuse a cookie that another host or an unencrypted page has set."""

    def __init__(self, *, secure: bool) -> None:
        prefix = "__Host-" if secure else ""
        self._flags = "; Path=/; HttpOnly; SameSite=Lax" + ("; Secure" if secure else "")
        self.session, self.visitor, self.known = f"{prefix}session", f"{prefix}visitor", f"{prefix}known"
        self.login_state = f"{prefix}code-"
        """What the names of the cookies of open logins begin with."""

    def given(self, name: str, value: str, seconds: int) -> str:
        """A Set-Cookie header that gives one."""
        return f"{name}={value}; Max-Age={seconds}{self._flags}"

    def taken(self, name: str) -> str:
        """A Set-Cookie header that takes one away."""
        return self.given(name, "", 0)


PAGE_STREAMS_OF_ONE, PAGE_STREAMS_OF_ALL = 32, 128
"""A quarter of the connections that a server takes, and what one organisation may have of them."""
DOWNLOADS_OF_ONE, DOWNLOADS_OF_ALL = 2, 8
"""A download reads its list page after page for as long as it lasts, so there are few at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageContext(SiteContext):
    """What the pages behind /auth need besides: who is signed in, and how their forms and cookies look."""

    directory: StoreDirectory
    seals: FormSeals
    cookies: PageCookies
    mail_on_console: bool
    event_streams: StreamSlots = field(default_factory=lambda: StreamSlots(PAGE_STREAMS_OF_ONE, PAGE_STREAMS_OF_ALL))
    """The streams of events that browsers hold open, by organisation."""
    downloads: StreamSlots = field(default_factory=lambda: StreamSlots(DOWNLOADS_OF_ONE, DOWNLOADS_OF_ALL))
    """The lists that are being downloaded, by organisation."""


def make_page_context(service: "Service", report: FaultReport) -> PageContext:
    base = urlsplit(service.site.base_url)
    return PageContext(
        pipeline=service.pipeline,
        directory=service.directory,
        report=report,
        seals=FormSeals(service.keyring_text),
        cookies=PageCookies(secure=base.scheme == "https"),
        origin=f"{base.scheme}://{base.netloc}",
        root=base.path.rstrip("/"),
        mail_on_console=not service.settings.smtp_url.get_secret_value(),
    )


VISITOR_COOKIE_SECONDS = 86_400


@dataclass(slots=True, kw_only=True)
class PageRequest(Visit):
    """A visit to a page behind /auth. `path` is what follows /auth, `started` the clock's monotonic seconds at its begin."""

    context: PageContext
    path: str
    started: float
    session: BrowserSession | None = None
    caller: Caller | None = None
    _visitor: str = ""

    async def recognise(self) -> None:
        """Who presents the session's cookie, as our store knows them now."""
        presented = self.cookies.get(self.context.cookies.session, "")
        self.session = await browser_sessions.browser_session_of(self.context.deps, cookie=presented, now=self.now)
        if self.session is not None:
            self.caller = await self.context.directory.signed_in(self.session.person, self.session.organisation, self.session.created)

    @property
    def who(self) -> BrowserSession:
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
        if not self.acting.organisation:
            raise Conflict("You belong to no organisation yet", hint="Sign up to make one, or ask a colleague to invite you")
        return self.acting.organisation

    @property
    def visitor(self) -> str:
        """The cookie of a browser that nobody is signed in with; it is given one when a form is shown to it."""
        cookies = self.context.cookies
        presented = self._visitor or self.cookies.get(cookies.visitor, "")
        if not SESSION_COOKIE.fullmatch(presented):
            presented = new_secret_token(self.context.deps.ids)
            self.setting[cookies.visitor] = cookies.given(cookies.visitor, presented, VISITOR_COOKIE_SECONDS)
        self._visitor = presented
        return presented

    @property
    def bound_to(self) -> str:
        """What a form that is shown now is bound to: this sign-in, or this browser."""
        return f"session|{self.session.cookie}" if self.session is not None else f"visitor|{self.visitor}"

    def csrf(self) -> str:
        """The token of a form on a page that is shown now."""
        return self.context.seals.make("form", self.bound_to)

    def check_form(self) -> None:
        """Refuse a form whose token is not that of this sign-in or this browser."""
        anonymous = self.session is None and not SESSION_COOKIE.fullmatch(self.cookies.get(self.context.cookies.visitor, ""))
        if anonymous or not self.context.seals.good(self.form.get(CSRF_FIELD, ""), "form", self.bound_to):
            refuse_form()

    def record(self, operation: str, *, person: str = "") -> AuditRecordMaker:
        """Makes the audit row of what is done without an operation. No address, no code, no argument."""
        clock, principal = self.context.pipeline.clock, person or self.who.person

        def line(organisation: str) -> AuditRecord:
            milliseconds = round((clock.monotonic() - self.started) * 1000, 3)
            return AuditRecord(self.now, organisation, "web", operation, principal, "", "ok", 200, milliseconds, self.request_id)

        return line

    def login_state_names(self) -> list[str]:
        """The names of the cookies of requests whose codes are in the mail."""
        return [name for name in self.cookies if name.startswith(self.context.cookies.login_state)]

    async def sign_in(self, person: str, *, organisation: str | None = None) -> None:
        """A new session in a new cookie; whatever this browser presented before ends or is forgotten."""
        cookies, deps = self.context.cookies, self.context.deps
        cookie = await browser_sessions.start_browser_session(
            deps,
            person=person,
            now=self.now,
            organisation=organisation,
            instead_of=self.session,
            record=self.record("sign_in", person=person),
        )
        self.setting[cookies.session] = cookies.given(cookies.session, cookie, browser_sessions.SESSION_LIFETIME_SECONDS)
        self.forget(cookies.visitor, *self.login_state_names())

    def forget(self, *names: str) -> None:
        for name in names:
            self.setting[name] = self.context.cookies.taken(name)

    def page(
        self,
        template: str,
        facts: Mapping[str, object],
        *,
        problem: PageProblem | None = None,
        posts_to: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> Response:
        """The page of `template`, with the status of its `problem`.

        `posts_to` is where a redirect after its form may lead besides ourselves, as CSP spells it.
        """
        caller = self.caller
        member = caller if caller is not None and caller.organisation else None
        shared = {
            "root": self.context.root,
            "here": self.path,
            "csrf": self.csrf,
            "me": self.session,
            "organisation": member,
            "admin": member is not None and member.role is Role.ADMIN,
            "site": self.context.deps.site,
            "problem": problem,
            "stale": self.session is not None and not self.signed_in_lately,
        }
        status = 200 if problem is None else problem.status
        return page_response(
            pages_templates(),
            self.request,
            template,
            {**shared, **facts},
            style=pages_style(),
            posts_to=posts_to,
            status=status,
            headers=headers,
        )

    def redirect(self, target: str) -> Response:
        """A redirect to a page of ours: `target` is one of the console, or a path below /auth (it starts with a slash)."""
        return see_other(f"{self.context.root}{whole_path(target)}")

    @property
    def signed_in_lately(self) -> bool:
        """Whether the sign-in is as new as decisions ask for that may do harm in a browser somebody has left open."""
        return self.now - self.who.created <= RECENT_SIGN_IN_SECONDS

    async def sign_in_again(self, back: str) -> Response:
        """Ends this browser's session: whoever goes on proves again who they are, and is led `back`, the whole path of a page of ours."""
        await browser_sessions.sign_out_browser(self.context.deps, session=self.who, record=self.record("sign_out"))
        self.forget(self.context.cookies.session)
        return self.redirect(f"/sign-in?next={quote(whole_path(next_page(back)))}")

    def to_sign_in(self) -> Response:
        """A redirect to sign-in, which leads back to this page afterwards."""
        given = {**self.form, **self.query}
        kept = next((names for names in CARRIED_FIELDS if all(given.get(name) for name in names)), ())
        back = next_page(f"/auth{self.path}" + ("?" if kept else "") + "&".join(f"{name}={given[name]}" for name in kept))
        return self.redirect("/sign-in" if back == HOME_PAGE else f"/sign-in?next=/auth{quote(back)}")
