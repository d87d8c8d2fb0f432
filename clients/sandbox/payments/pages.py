"""What people see of the simulated processor: one request in, one page or one redirect out."""

from typing import cast
from urllib.parse import parse_qsl, quote, urlsplit

from clients.sandbox.payments.asgi import LONGEST_FORM, Receive, Scope, Send, read_body, reply
from clients.sandbox.payments.pages_checkout import act_on_checkout, show_checkout
from clients.sandbox.payments.pages_dashboard import show_dashboard
from clients.sandbox.payments.pages_invoice import act_on_invoice, show_invoice
from clients.sandbox.payments.pages_layout import Away, Headers, Shown, headers_of, origin_of, plain_headers, problem, render
from clients.sandbox.payments.pages_oauth import act_on_authorize, show_authorize
from clients.sandbox.payments.pages_onboarding import act_on_onboarding, show_onboarding
from clients.sandbox.payments.pages_visit import Act, House, Visit

ROUTES: dict[str, dict[str, Act]] = {
    "onboarding": {"GET": show_onboarding, "POST": act_on_onboarding},
    "dashboard": {"GET": show_dashboard},
    "oauth": {"GET": show_authorize, "POST": act_on_authorize},
    "invoices": {"GET": show_invoice, "POST": act_on_invoice},
    "checkout": {"GET": show_checkout, "POST": act_on_checkout},
}
NOTHING = "There is nothing here"
FIELDS = 20
RESERVED = "%/:=&?~#+!$,;'@()*[]"
"""What stays as it is in an address; a line break in it must not end the header."""


class Pages:
    """Every page, by path. Their addresses hold a name that nobody guesses, and that is all that lets people in."""

    def __init__(self, house: House) -> None:
        self._house = house

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; `path` is what follows the pages' address."""
        body = await read_body(receive, LONGEST_FORM)
        shown: Shown = problem("That was too much", "A form of this size was not sent by our pages.", 413)
        if body is not None:
            shown = await self._answer(scope, body)
        method = cast(str, scope["method"])
        if isinstance(shown, Away):
            await reply(send, 303, [(b"location", quote(shown.target, safe=RESERVED).encode()), *plain_headers()], b"")
            return
        page = render(shown, self._here(scope))
        await reply(send, shown.status, headers_of(shown), page, head_only=method == "HEAD")

    def _here(self, scope: Scope) -> str:
        path, query = cast(str, scope["path"]), cast(bytes, scope["query_string"]).decode("latin-1")
        return f"{urlsplit(self._house.pages_url).path}{path}{'?' if query else ''}{query}"

    async def _answer(self, scope: Scope, body: bytes) -> Shown:
        method = cast(str, scope["method"]).replace("HEAD", "GET")
        kind, _, name = cast(str, scope["path"]).strip("/").partition("/")
        acts = ROUTES.get(kind)
        if acts is None or not name or "/" in name:
            return problem(NOTHING, "Check the address.", 404)
        act = acts.get(method)
        if act is None:
            return problem("That is not possible here", "Open the address in a browser.", 405)
        if method == "POST" and not self._is_ours(cast(Headers, scope["headers"])):
            return problem("This form was not taken", "It was not sent from a page of ours. Load the page again.", 403)
        query, form = fields(cast(bytes, scope["query_string"])), fields(body)
        if query is None or form is None:
            return problem("This cannot be read", "Load the page again and send it once more.", 400)
        async with self._house.turn(writes=method == "POST" or kind == "dashboard") as state:
            return act(Visit(state, name, query, form, self._house.webhook_url))

    def _is_ours(self, headers: Headers) -> bool:
        """A browser says where a form was sent from."""
        said = dict(headers).get(b"origin")
        return said is None or said.decode("latin-1") == origin_of(self._house.pages_url)


def fields(text: bytes) -> dict[str, str] | None:
    """Each field once; None where it cannot be read in one way."""
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=FIELDS)
    except ValueError:
        return None
    return {name: value.strip() for name, value in pairs} if len(dict(pairs)) == len(pairs) else None
