"""The API's front: who calls, in which account, whether the call was made before, and how the answer looks."""

from collections.abc import Mapping
from hashlib import sha256
from urllib.parse import unquote

import orjson

from clients.sandbox.payments.call import Answer, Call
from clients.sandbox.payments.entities import Stored
from clients.sandbox.payments.form import Form, parsed
from clients.sandbox.payments.refusal import Members, OAuthRefusal, Refusal, no_account
from clients.sandbox.payments.routes import Route, route_of
from clients.sandbox.payments.state import API_VERSION, State
from registry.order_numbers import without_tokens

NO_KEY = (
    "You did not provide an API key. You need to provide your API key in the Authorization header, using Bearer auth (e.g. 'Authorization: "
    "Bearer YOUR_SECRET_KEY'). See https://stripe.com/docs/api#authentication for details, or we can help at https://support.stripe.com/."
)
NO_PATH = (
    "Unrecognized request URL ({method}: {path}). If you are trying to list objects, remove the trailing slash. If you are trying to "
    "retrieve an object, make sure you passed a valid (non-empty) identifier in your code. Please see https://stripe.com/docs or we can "
    "help at https://support.stripe.com/."
)
REUSED = (
    "Keys for idempotent requests can only be used with the same parameters they were first used with. Try using a key other than '{key}' "
    "if you meant to execute a different request."
)
LONGEST_KEY = 255


class Api:
    """Answers calls out of a state. Header names are in lower case."""

    def __init__(self, *, key: str) -> None:
        self._key = key

    def handle(self, state: State, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """One call, in a turn of its own."""
        state.request, state.request_key = state.new_id("req_", 14), None
        try:
            return self._answer(state, method, path, query, headers, body)
        except Refusal as refused:
            return answer(state, headers, refused.status, refused.body(state.request))
        except OAuthRefusal as refused:
            return answer(state, headers, refused.status, refused.body())
        finally:
            state.request = state.request_key = None

    def _answer(self, state: State, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
        text = body.decode(errors="replace") if method == "POST" else query
        route = route_of(method, path)
        self._check_key(headers, text if path.startswith("/oauth/") else "")
        if route is None:
            raise Refusal(NO_PATH.format(method=method, path=path), status=404, early=True)
        account = headers.get("stripe-account") or state.platform
        if account not in state.accounts or not state.accounts[account].attached:
            raise no_account(account, self._key)
        check_version(headers)
        call = Call(state, account, self._key, path, tuple(map(unquote, route.ids)), method=method, headers=headers)
        if method != "POST":
            return answer(state, headers, 200, route.handler(call, Form(parsed(text))))
        return once(call, route, text)

    def _check_key(self, headers: Mapping[str, str], form: str) -> None:
        """The secret key, as a bearer; the way in for accounts also takes it as a parameter."""
        scheme, _, given = headers.get("authorization", "").partition(" ")
        secret = parsed(form).get("client_secret") if form else None
        if isinstance(secret, str):
            given, scheme = secret, "bearer"
        if scheme.lower() != "bearer" or not given:
            raise Refusal(NO_KEY, status=401, early=True)
        if given != self._key:
            raise Refusal(f"Invalid API Key provided: {given[:8]}{'*' * 12}{given[-4:]}", status=401, early=True)


def check_version(headers: Mapping[str, str]) -> None:
    """Choice: one version is simulated; without one, it is that."""
    version = headers.get("stripe-version")
    if version not in (None, API_VERSION):
        raise Refusal(f"Invalid Stripe API version: {version}. This simulated processor speaks {API_VERSION}.", early=True)


def once(call: Call, route: Route, text: str) -> Answer:
    """The same call under the same key is done once, and answered alike for a day."""
    state, headers = call.state, call.headers
    key = headers.get("idempotency-key")
    if key is None:
        return answer(state, headers, *perform(call, route, text))
    if not 1 <= len(key) <= LONGEST_KEY:
        raise Refusal(f"Idempotency keys hold 1 to {LONGEST_KEY} characters.", type="idempotency_error", early=True)
    key = without_tokens(key)  # as the file has it: a refund that release 1.0 began, and that is sent again, is the same one
    state.request_key = key
    place, fingerprint = f"{call.account}\n{key}", sha256(f"{call.path}\n{text}".encode()).hexdigest()
    stored = state.answers.get(place)
    if stored is not None:
        if stored.fingerprint != fingerprint:
            raise Refusal(REUSED.format(key=key), type="idempotency_error", early=True)
        again = {"idempotent-replayed": "true", "original-request": stored.request}
        return answer(state, headers, stored.status, stored.body.encode(), again)
    status, found = perform(call, route, text)
    body = orjson.dumps(found)
    state.answers[place] = Stored(fingerprint, state.now(), status, body.decode(), state.request or "")
    return answer(state, headers, status, body, {"original-request": state.request or ""})


def perform(call: Call, route: Route, text: str) -> tuple[int, Members]:
    """Do it. What was begun and refused is an answer like any other; what could not begin is raised."""
    try:
        return 200, route.handler(call, Form(parsed(text)))
    except Refusal as refused:
        if refused.early:
            raise
        return refused.status, refused.body(call.state.request or "")


def answer(state: State, headers: Mapping[str, str], status: int, body: Members | bytes, more: Mapping[str, str] | None = None) -> Answer:
    """What goes over the wire."""
    found: dict[str, str] = {
        "content-type": "application/json",
        "request-id": state.request or "",
        "stripe-version": API_VERSION,
        "stripe-should-retry": "false",
        "cache-control": "no-cache, no-store",
        **(more or {}),
    }
    if key := headers.get("idempotency-key"):
        found["idempotency-key"] = key
    if account := headers.get("stripe-account"):
        found["stripe-account"] = account
    return Answer(status, found, body if isinstance(body, bytes) else orjson.dumps(body))
