"""One request to a page of the console: its reads, its buttons, how it is drawn, at once or as it comes, and the same calls for programs.

Every figure and every button is a call of an operation through the pipeline, as the signed-in person. What only draws a page charges
neither quota nor burst: the page is counted and recorded as a whole. Lines to copy are quoted for the shell and free of characters that
hide, and the key is a variable of the reader's own shell.
"""

import hashlib
import re
import shlex
from asyncio import Task, create_task, wait
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import ClassVar, NamedTuple, cast
from urllib.parse import quote

import anyio
import orjson
from jinja2 import Template
from markupsafe import Markup, escape
from starlette.responses import Response
from starlette.templating import Jinja2Templates
from starlette.types import Message, Receive, Scope, Send

from operations.languages import DEFAULT_LANGUAGE, LanguageTexts, datetime_to_show
from operations.web_pages import page_templates
from registry.call import Reply
from registry.caller import Role
from registry.catalogue import AnyOperation
from registry.challenge import Loss
from registry.characters import is_hidden_character
from registry.errors import PreconditionFailed
from registry.operation import StreamedAnswer
from registry.versions import parse_if_match
from transports.http.response import send_stream, until_disconnected
from transports.reference.entries import curl_example, tool_call_example
from transports.web.console.assets import console_asset
from transports.web.console.charts import bar_chart
from transports.web.console.translations import find_hint, find_message, find_sentences, said_losses, said_promise
from transports.web.pages.calls import CallArguments, CallOutcome, ConfirmQuestion, needs_confirmation
from transports.web.pages.layout import PAGE_TEMPLATES, as_sentence, format_money, minor_places
from transports.web.pages.request import CONSOLE_PATH, PageProblem, PageRequest, next_page, problem_of_reply
from transports.web.site import NO_HEADERS, PAGE_MEDIA_TYPE, REFERRER_POLICY

CONSOLE_TEMPLATES = Path(__file__).parent / "templates"
ONCE_FIELD = "once"
"""Of a form: the idempotency key of its call, made with the form, so that a form that is sent twice is carried out once."""
SURE_FIELD, SHOWN_FIELD, VERSION_FIELD = "sure", "shown", "version"
"""Of a form: that its question was answered, the digest of what it was made from, and the ETag of what it changes."""
ONCE_KEY = re.compile(r"idk_[0-9a-z]{10,40}", re.ASCII)
MENU = (
    ("today", ""),
    ("fleet", "/fleet"),
    ("changes", "/changes"),
    ("issue", "/issue"),
    ("approvals", "/approvals"),
    ("shops", "/shops"),
    ("money", "/money"),
    ("insight", "/insight"),
    ("webhooks", "/webhooks"),
    ("events", "/events"),
    ("organisation", "/organisation"),
)
"""The pages of the menu: the file of their texts, and what follows /console."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; worker-src 'self'; "
    "frame-src 'self'; form-action 'self'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types console; "
    "frame-ancestors 'none'"
)
PAGE_HEADERS: Mapping[str, str] = {
    "content-type": PAGE_MEDIA_TYPE,
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": REFERRER_POLICY,
    "cache-control": "no-store",
    "x-robots-tag": "noindex",
}
FRAME_SECONDS = 0.06
"""How long the answer is waited for before the frame of a page is sent without it."""
FRAME_END = Markup("<!-- the answer -->")
"""Where in a page its frame ends. What comes from outside is escaped, so that no name can be this."""

KEY_VARIABLE = "$RESELLER_API_KEY"
PRINTED_KEY = "'Authorization: Bearer <API_KEY>'"


class SameCall(NamedTuple):
    """One call in the forms in which programs make it. `tool` is None where the operation is no tool."""

    operation: str
    curl: str
    tool: str | None
    command: str


def same_call(operation: AnyOperation, arguments: Mapping[str, object], base_url: str) -> SameCall:
    """The call of `operation` at `base_url` with `arguments`."""
    plain = cast(Mapping[str, object], without_hidden_characters(arguments))
    curl = curl_example(operation, plain, base_url).replace(PRINTED_KEY, f'"Authorization: Bearer {KEY_VARIABLE}"')
    given = f" --json-input {shlex.quote(orjson.dumps(plain).decode())}" if plain else ""
    return SameCall(operation.id, curl, tool_call_example(operation, plain), f"reseller call {operation.id}{given}")


def without_hidden_characters(value: object) -> object:
    """`value` without control, direction and other characters that nobody sees, in every text of it."""
    if isinstance(value, str):
        return "".join(each for each in value if not is_hidden_character(each))
    if isinstance(value, Mapping):
        return {name: without_hidden_characters(each) for name, each in cast(Mapping[str, object], value).items()}
    if isinstance(value, (list, tuple)):
        return [without_hidden_characters(each) for each in cast("list[object]", value)]
    return value


class PageRead(NamedTuple):
    """What a page asks: an operation and its arguments."""

    operation: str
    arguments: CallArguments


class ConsoleTemplate(Template):
    """A page whose tables are read on a phone, too."""

    def render(self, *args: object, **facts: object) -> str:
        return TABLE.sub(table_of_cards, super().render(*args, **facts))


TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
TABLE_PART = re.compile(r"<(table|tr|th|td)\b([^>]*)>")
HEADING = re.compile(r"<th\b([^>]*)>(.*?)</th>", re.DOTALL)
UNSEEN = re.compile(r'<span class="unseen">.*?</span>|<[^>]+>', re.DOTALL)
COLSPAN = re.compile(r'colspan="(\d+)"')
FEWEST_COLUMNS = 4
"""A table of fewer columns stays a table in a narrow window."""
ROLES = {"table": "table", "tr": "row", "th": "rowheader", "td": "cell"}


def table_of_cards(found: re.Match[str]) -> str:
    """A table of which the style sheet makes a card for each row in a narrow window: each cell holds its column's name.

    What is no longer drawn as a table is none for some screen readers, if nothing says so: hence the roles.
    """
    head, ending, rows = found[0].partition("</thead>")
    names = [UNSEEN.sub("", words).strip() for _, words in HEADING.findall(head)]
    if len(names) < FEWEST_COLUMNS:
        return found[0]
    place = 0

    def with_role(part: re.Match[str]) -> str:
        nonlocal place
        tag, own = part.groups()
        label = ""
        if tag == "tr":
            place = 0
        elif tag != "table":
            name = names[place] if tag == "td" and place < len(names) else ""
            label = f' data-label="{name}"' if name else ""
            place += int(span[1]) if (span := COLSPAN.search(own)) else 1
        return f'<{tag}{own} role="{ROLES[tag]}"{label}>'

    return TABLE_PART.sub(with_role, head).replace('"rowheader"', '"columnheader"') + ending + TABLE_PART.sub(with_role, rows)


@cache
def console_templates() -> Jinja2Templates:
    """The templates of the console, then those of the other pages, whose form fields they share."""
    made = page_templates(CONSOLE_TEMPLATES, PAGE_TEMPLATES)
    made.template_class = ConsoleTemplate
    made.filters["sentence"] = as_sentence
    cast("dict[str, object]", made.globals)["bar_chart"] = bar_chart
    return Jinja2Templates(env=made)


class LatePage(Response):
    """A page whose frame is sent at once, and the rest of the document when the answer is there.

    It is one answer, which succeeded when its frame was sent: what could not be read is told in its place.
    """

    def __init__(self, frame: str, whole: Task[Response], headers: Mapping[str, str]) -> None:
        super().__init__(b"", 200, {**headers, "x-accel-buffering": "no"})
        del self.headers["content-length"]
        self._frame, self._whole = frame, whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = create_task(until_disconnected(receive))
        gone.add_done_callback(lambda _: self._whole.cancel())  # nobody waits for the answer

        async def leaving() -> Message:
            await gone
            return {"type": "http.disconnect"}

        try:
            pieces = late_pieces(self._frame, self._whole)
            await send_stream(leaving, send, self.status_code, self.raw_headers, StreamedAnswer(pieces, PAGE_MEDIA_TYPE))
        finally:
            gone.cancel()


async def late_pieces(frame: str, whole: Task[Response]) -> AsyncGenerator[bytes]:
    """The frame, and of the whole page what stands behind it; nothing more once `whole` was cancelled. Raises ValueError for a page without
    a frame, which is never ended then."""
    try:
        yield frame.encode()
        await wait((whole,))
        if whole.cancelled():
            return
        _, found, rest = bytes(whole.result().body).partition(FRAME_END.encode())
        if not found:
            raise ValueError("the page does not say where its frame ends")
        yield rest
    finally:
        whole.cancel()


@dataclass(slots=True, kw_only=True)
class ConsoleRequest(PageRequest):
    """A visit to the console. `path` is what follows /console."""

    texts: LanguageTexts
    pressed: str = ""
    """The operation of the last button."""
    reads: list[PageRead] = field(default_factory=list[PageRead])
    """What the page has asked, in order: shown as calls that a program can make."""
    waits: bool = False
    """Whether the frame of the page is sent before its answer is there."""
    frame_end: ClassVar[Markup] = FRAME_END

    async def read(self, operation: str, /, **arguments: object) -> CallOutcome:
        """What an operation that only reads answers. It costs nothing: the page was counted. A refusal is in the outcome."""
        self.reads.append(PageRead(operation, arguments))
        return self.outcome_of(await self.context.call(self, operation, arguments, caller=self.acting, draws_page=True))

    async def read_together(self, **asked: PageRead) -> Mapping[str, CallOutcome]:
        """The outcomes of several reads at once, each under the name it was asked by."""
        found: dict[str, CallOutcome] = {}

        async def ask(name: str, wanted: PageRead) -> None:
            found[name] = await self.read(wanted.operation, **wanted.arguments)

        async with anyio.create_task_group() as tasks:
            for name, wanted in asked.items():
                tasks.start_soon(ask, name, wanted)
        return found

    async def press(self, operation: str, arguments: CallArguments) -> CallOutcome:
        """What a button does: a call that is charged and recorded as any other.

        The idempotency key comes with the form, and so does the confirm token once the person was asked. So does the version that the form
        was made from, where what it changes has one: what somebody else has changed since is not overwritten, and the form is shown again
        with what was typed and the new version, so that sending it once more is a decision.
        """
        self.pressed = operation
        once, confirm = self.form.get(ONCE_FIELD, ""), self.form.get("confirm_token")
        asked = self.context.pipeline.catalogue.operations[operation]
        version = self.form.get(VERSION_FIELD, "") if asked.versioned is not None else ""
        # Choice: a version is changed once by itself. Under a key, too, a form that is sent once more would be told that it holds, when
        # somebody else has changed it since.
        keyed = not version and asked.once is not None and ONCE_KEY.fullmatch(once) is not None
        reply = await self.context.call(
            self,
            operation,
            arguments,
            caller=self.acting,
            confirm_token=confirm or None,
            idempotency_key=once if keyed else None,
            if_match=parse_if_match(version) if version else None,
        )
        outcome = self.outcome_of(reply)
        refusal = reply.refusal
        return outcome._replace(problem=self.changed_meanwhile(refusal)) if isinstance(refusal, PreconditionFailed) else outcome

    def changed_meanwhile(self, refusal: PreconditionFailed) -> PageProblem:
        """The problem of a form that was made from an older version: who has changed it and when, where that is known."""
        told = refusal.fields()
        moment, person = told.get("changed_at"), told.get("changed_by")
        facts = {"moment": self.texts.moment(str(moment)), "name": told.get("changed_by_name") or person} if moment else {}
        word = "changed_since" if moment is None else "changed_at" if person is None else "changed_by"
        word = "changed_by_you" if person == self.acting.principal else word
        text, hint = self.say(f"shared.{word}", **facts), self.say("shared.changed_since_hint")
        return PageProblem(refusal.status, text, hint, code=refusal.error_code)

    def ask_first(self, outcome: CallOutcome, *, title: str, button: str, back: str) -> Response | None:
        """The page with the question, where the operation waits for a confirmation; its form sends what was sent, and the token."""
        if not needs_confirmation(outcome):
            return None
        fields = {name: value for name, value in self.form.items() if name not in ("csrf", "confirm_token")}
        whole = {**fields, "confirm_token": str(outcome.body["confirm_token"])}
        losses = cast("Sequence[Loss]", outcome.body.get("losses") or ())
        text = self.promise(self.pressed, str(outcome.body["message"]), losses)
        question = ConfirmQuestion(title, text, button, self.path, whole)
        return self.draw("question.html", {"question": question, "losses": said_losses(self.texts, losses), "back": back})

    def ask_of_ours(self, *, title: str, text: str, button: str, back: str) -> Response | None:
        """The page with a question, before an operation that asks none; None once the person has pressed its button."""
        if self.form.get(SURE_FIELD) == "yes":
            return None
        fields = {name: value for name, value in self.form.items() if name != "csrf"} | {SURE_FIELD: "yes"}
        question = ConfirmQuestion(title, text, button, self.path, fields)
        return self.draw("question.html", {"question": question, "losses": (), "back": back})

    def changed_since(self, shown: object) -> PageProblem | None:
        """The problem of a form that was made when something else was to be shown than `shown` is now; None where nothing has changed.

        For what has no version of ours: what an outside system holds, and what is taken back for good. The form is shown again with what
        was typed and with what holds now, so that sending it once more is a decision.
        """
        if self.form.get(SHOWN_FIELD) == digest_of(shown):
            return None
        return PageProblem(412, self.say("shared.changed_since"), self.say("shared.changed_since_hint"))

    def may(self, operation: str) -> str:
        """Why the person may not press a button, in their language; empty where they may."""
        found, caller = self.context.pipeline.catalogue.operations[operation], self.acting
        if found.role is Role.ADMIN and caller.role is not Role.ADMIN:
            return self.texts.say("shared.admins_only")
        if int(found.scope) & ~caller.scopes:
            return self.texts.say("shared.tier_carries_not")
        return ""

    def to_sign_in(self) -> Response:
        """A redirect to sign-in, which leads back to this page, with what its address says."""
        query = self.request.scope["query_string"].decode("latin-1")
        wanted = f"{CONSOLE_PATH}{self.path}" + (f"?{query}" if query and self.request.method == "GET" else "")
        back = wanted if next_page(wanted) == wanted else CONSOLE_PATH
        return self.redirect(f"/sign-in?next={quote(back)}")

    def go(self, path: str) -> Response:
        """A redirect to a page of the console, so that reloading it repeats nothing. `path` is what follows /console."""
        return self.redirect(f"{CONSOLE_PATH}{path}")

    def once(self) -> str:
        """A new key for a form that is shown now."""
        return self.context.deps.ids.new("idk_")

    def say(self, key: str, **facts: object) -> str:
        """A text in the reader's language."""
        return self.texts.say(key, **facts)

    def moment(self, value: float | str | None) -> Markup:
        """A moment as the page shows it: UTC, which the script turns into the reader's own time."""
        if value is None:
            return Markup(escape(self.texts.say("shared.never")))
        text = self.texts.moment(value)
        stamp = value if isinstance(value, str) else f"{int(value)}"
        return Markup('<time datetime="{}" title="{}">{}</time>').format(stamp, text, text)

    def day(self, value: float | str) -> Markup:
        """A day of UTC, which the script writes as it writes moments."""
        return Markup('<time datetime="{:%Y-%m-%d}">{}</time>').format(datetime_to_show(value), self.texts.day(value))

    def euros(self, amount: float) -> str:
        """An amount in euros, as the reader's language writes it."""
        return self.texts.money(round(amount * 100), "EUR")

    def word(self, page: str, code: str) -> str:
        """The words for a code of the API in the reader's language; the code itself where the page has none."""
        return self.texts.words.get(f"{page}.{code.lower()}", code)

    def operation_title(self, operation: str) -> str:
        """What an operation is called; its name where this release has none of that name."""
        found = self.context.pipeline.catalogue.operations.get(operation)
        return operation if found is None else self.texts.words.get(f"operations.{operation}", found.title)

    def promise(self, operation: str, sentence: str, losses: Sequence[Loss]) -> str:
        """What a call of `operation` will do, as it said so itself, in the reader's language."""
        return said_promise(self.texts, self.context.pipeline.catalogue.operations.get(operation), sentence, losses)

    def said(self, text: str) -> str:
        """Sentences that the API says, in the reader's language; marked as English where they have no translation."""
        if self.texts.language == DEFAULT_LANGUAGE:
            return text
        return find_message(self.texts, text) or Markup('<span lang="en">{}</span>').format(text)

    def said_problem(self, problem: PageProblem) -> PageProblem:
        """A refusal in the reader's language, as far as it has a translation."""
        if self.texts.language == DEFAULT_LANGUAGE:
            return problem
        text, hint = find_sentences(self.texts, problem.text), find_hint(self.texts, problem.hint)
        return replace(problem, text=text or problem.text, hint=hint or problem.hint)

    def outcome_of(self, reply: Reply) -> CallOutcome:
        found: Mapping[str, object] = orjson.loads(reply.body) if reply.body else {}
        problem, tag = problem_of_reply(reply, found), reply.headers.get("ETag", "")
        said = None if problem is None else self.said_problem(problem)
        return CallOutcome(found, said, reply.next_cursor, "Idempotent-Replayed" in reply.headers, tag)

    def promised(self, rows: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
        """Requests that wait for a person, or did, with what they will do and what is lost in the reader's language."""
        told: list[Mapping[str, object]] = []
        for row in rows:
            losses = cast("Sequence[Loss]", row["losses"])
            sentence = self.promise(str(row["operation"]), str(row["sentence"]), losses)
            told.append({**row, "sentence": sentence, "losses": said_losses(self.texts, losses)})
        return told

    def same_calls(self) -> list[SameCall]:
        """What the page has asked, as curl, the MCP and the command line ask it."""
        operations = self.context.pipeline.catalogue.operations
        base = self.context.deps.site.base_url
        return [same_call(operations[each.operation], each.arguments, base) for each in self.reads]

    def draw(
        self, template: str, facts: Mapping[str, object], *, problem: PageProblem | None = None, headers: Mapping[str, str] = NO_HEADERS
    ) -> Response:
        """The page of `template`, with the status of its `problem`."""
        status = 200 if problem is None else problem.status
        return console_templates().TemplateResponse(
            self.request, template, {**self.shared_facts(problem), **facts}, status, {**PAGE_HEADERS, **headers}
        )

    async def draw_late(
        self, template: str, early: Mapping[str, object], whole: Callable[[], Coroutine[object, object, Response]]
    ) -> Response:
        """The page that `whole` draws of the same template; its frame, of what is known `early`, is sent first where the answer takes long.

        `whole` waits for the charging system. What is answered or refused at once is a page as any other, with its status.
        """
        if self.request.method == "HEAD":
            return await whole()
        answering = create_task(whole())
        try:
            await wait((answering,), timeout=FRAME_SECONDS)
            if answering.done():
                return answering.result()
            self.waits = True
            return LatePage(self.frame(template, early), answering, PAGE_HEADERS)
        except BaseException:
            answering.cancel()
            raise

    def frame(self, template: str, early: Mapping[str, object]) -> str:
        """The page of `template` up to where its answer begins. What stands behind it is not drawn, and need not be known."""
        pieces: list[str] = []
        for piece in console_templates().get_template(template).generate({**self.shared_facts(None), **early}):
            pieces.append(piece)
            if FRAME_END in piece:
                break
        return "".join(pieces).partition(FRAME_END)[0]

    def shared_facts(self, problem: PageProblem | None) -> Mapping[str, object]:
        """What every page of the console is drawn from."""
        caller = self.caller
        member = caller if caller is not None and caller.organisation else None
        return {
            "root": self.context.root,
            "here": self.path,
            "menu": MENU,
            "csrf": self.csrf,
            "me": self.session,
            "organisation": member,
            "admin": member is not None and member.role is Role.ADMIN,
            "problem": problem,
            "simulated": bool(self.context.deps.network_instance) or not self.context.deps.draws,
            "page": self,
            "say": self.say,
            "texts": self.texts,
            "moment": self.moment,
            "money": partial(minor_money, self.texts),
            "once": self.once,
            "may": self.may,
            "digest_of": digest_of,
            "style_name": console_asset("css").name,
            "script_name": console_asset("js").name,
        }


def minor_money(texts: LanguageTexts, amount: int, currency: str) -> str:
    """Minor units of any currency, below zero, too, as the reader's language writes them."""
    if minor_places(currency) != 2:
        return format_money(amount, currency)
    return ("−" if amount < 0 else "") + texts.money(abs(amount), currency)


def digest_of(shown: object) -> str:
    """What a form shows, in short: it goes with the form, so that one that is older than somebody's change is found out."""
    return hashlib.sha256(orjson.dumps(shown, option=orjson.OPT_SORT_KEYS)).hexdigest()[:24]
