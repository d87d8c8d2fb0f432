"""What people see of the simulated processor: one request in, one page or one redirect out."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol, cast
from urllib.parse import parse_qsl, quote, urlsplit

from simulators.processor.account_pages import (
    show_authorize_page,
    show_dashboard,
    show_onboarding_page,
    submit_authorize_page,
    submit_onboarding_page,
)
from simulators.processor.asgi import (
    FORM_BODY_LIMIT,
    AsgiHeaders,
    AsgiReceive,
    AsgiScope,
    AsgiSend,
    read_processor_body,
    send_processor_answer,
)
from simulators.processor.pages_layout import (
    PageAnswer,
    PageHandler,
    PageRedirect,
    PageVisit,
    common_page_headers,
    page_headers,
    problem_page,
    render_page,
    web_origin,
)
from simulators.processor.payment_pages import show_checkout_page, show_invoice_page, submit_checkout_page, submit_invoice_page
from simulators.processor.state import ProcessorState

if TYPE_CHECKING:
    pass


PAGE_ROUTES: dict[str, dict[str, PageHandler]] = {
    "onboarding": {"GET": show_onboarding_page, "POST": submit_onboarding_page},
    "dashboard": {"GET": show_dashboard},
    "oauth": {"GET": show_authorize_page, "POST": submit_authorize_page},
    "invoices": {"GET": show_invoice_page, "POST": submit_invoice_page},
    "checkout": {"GET": show_checkout_page, "POST": submit_checkout_page},
}
NO_PAGE_TITLE = "There is nothing here"
FORM_FIELD_LIMIT = 20
ADDRESS_CHARACTERS = "%/:=&?~#+!$,;'@()*[]"
"""What stays as it is in an address; a line break in it must not end the header."""


class ProcessorPages:
    """Every page, by path. Their addresses hold a name that nobody guesses, and that is all that lets people in."""

    def __init__(self, processor: PagesProcessor) -> None:
        self._processor = processor

    async def __call__(self, scope: AsgiScope, receive: AsgiReceive, send: AsgiSend) -> None:
        """One request; `path` is what follows the pages' address."""
        body = await read_processor_body(receive, FORM_BODY_LIMIT)
        shown: PageAnswer = problem_page("That was too much", "A form of this size was not sent by our pages.", 413)
        if body is not None:
            shown = await self._answer(scope, body)
        method = cast(str, scope["method"])
        if isinstance(shown, PageRedirect):
            await send_processor_answer(
                send, 303, [(b"location", quote(shown.target, safe=ADDRESS_CHARACTERS).encode()), *common_page_headers()], b""
            )
            return
        page = render_page(shown, self._here(scope))
        await send_processor_answer(send, shown.status, page_headers(shown), page, head_only=method == "HEAD")

    def _here(self, scope: AsgiScope) -> str:
        path, query = cast(str, scope["path"]), cast(bytes, scope["query_string"]).decode("latin-1")
        return f"{urlsplit(self._processor.pages_url).path}{path}{'?' if query else ''}{query}"

    async def _answer(self, scope: AsgiScope, body: bytes) -> PageAnswer:
        method = cast(str, scope["method"]).replace("HEAD", "GET")
        kind, _, name = cast(str, scope["path"]).strip("/").partition("/")
        acts = PAGE_ROUTES.get(kind)
        if acts is None or not name or "/" in name:
            return problem_page(NO_PAGE_TITLE, "Check the address.", 404)
        act = acts.get(method)
        if act is None:
            return problem_page("That is not possible here", "Open the address in a browser.", 405)
        if method == "POST" and not self._is_ours(cast(AsgiHeaders, scope["headers"])):
            return problem_page("This form was not taken", "It was not sent from a page of ours. Load the page again.", 403)
        query, form = read_page_fields(cast(bytes, scope["query_string"])), read_page_fields(body)
        if query is None or form is None:
            return problem_page("This cannot be read", "Load the page again and send it once more.", 400)
        async with self._processor.turn(writes=method == "POST" or kind == "dashboard") as state:
            return act(PageVisit(state, name, query, form, self._processor.webhook_url))

    def _is_ours(self, headers: AsgiHeaders) -> bool:
        """A browser says where a form was sent from."""
        origin = dict(headers).get(b"origin")
        return origin is None or origin.decode("latin-1") == web_origin(self._processor.pages_url)


def read_page_fields(text: bytes) -> dict[str, str] | None:
    """Each field once; None where it cannot be read in one way."""
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FORM_FIELD_LIMIT)
    except ValueError:
        return None
    return {name: value.strip() for name, value in pairs} if len(dict(pairs)) == len(pairs) else None


class PagesProcessor(Protocol):
    """The processor, as its pages know it."""

    pages_url: str
    webhook_url: str

    def turn(self, *, writes: bool) -> AbstractAsyncContextManager[ProcessorState]:
        """The state, for nobody else at the same time."""
        ...
