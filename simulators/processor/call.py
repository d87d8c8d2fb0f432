"""One call of the API: its parameters, the account that it acts in, refusals, and what the nouns of the API have in common."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Generic, TypeAlias, TypeVar, cast
from urllib.parse import parse_qsl, urlsplit

from simulators.processor.state import AccountBook, JsonObject, LabelledRow, ProcessorAccount, ProcessorState, StoredRow, emit_event

ERROR_DOCS_URL = "https://stripe.com/docs/error-codes/"
FormNode: TypeAlias = "str | dict[str, FormNode]"
PARAMETER_NAME = re.compile(r"^([^\[\]]+)((?:\[[^\[\]]*\])*)$")
WHOLE_NUMBER = re.compile(r"^-?[0-9]{1,18}$")
METADATA_LIMIT, METADATA_KEY_LIMIT, METADATA_VALUE_LIMIT = 50, 40, 500
RowT = TypeVar("RowT")
LIST_LIMIT, USUAL_LIST_LENGTH = 100, 10


class ProcessorRefusal(Exception):
    """An error answer. `early`: the call was never begun, so nothing is kept under its idempotency key."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        early: bool = False,
        more: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.type, self.code, self.param = message, status, type, code, param
        self.early, self.more = early, more or {}

    def body(self, request: str) -> JsonObject:
        """As it goes over the wire; what does not apply is left out."""
        error: JsonObject = {"message": self.message, "type": self.type, **self.more}
        if self.code is not None:
            error |= {"code": self.code, "doc_url": ERROR_DOCS_URL + self.code.replace("_", "-")}
        if self.param is not None:
            error["param"] = self.param
        error["request_log_url"] = f"https://dashboard.stripe.com/test/logs/{request}?t=0"
        return {"error": error}


class OAuthRefusal(Exception):
    """An error answer of the way in for accounts (RFC 6749)."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.error, self.description, self.status = error, description, status

    def body(self) -> JsonObject:
        return {"error": self.error, "error_description": self.description}


def missing_row(kind: str, id: str, *, param: str, status: int = 404, early: bool = False) -> ProcessorRefusal:
    return ProcessorRefusal(f"No such {kind}: '{id}'", status=status, code="resource_missing", param=param, early=early)


def account_refusal(account: str, key: str) -> ProcessorRefusal:
    shown = f"{key[:8]}{'*' * 12}{key[-4:]}"
    text = (
        f"The provided key '{shown}' does not have access to account '{account}' (or that account does not exist). "
        "Application access may have been revoked."
    )
    return ProcessorRefusal(text, status=403, code="account_invalid", early=True)


PROCESSOR_CURRENCY_CODES = (
    "aed aud bgn brl cad chf clp cny cop czk dkk eur gbp hkd huf idr ils inr jpy krw mxn myr nok nzd php pln ron sek sgd thb try twd uah "
    "usd vnd zar"
)
PROCESSOR_CURRENCIES = frozenset(PROCESSOR_CURRENCY_CODES.split())


def parse_form(text: str) -> dict[str, FormNode]:
    """Form-encoded parameters as a tree; members of lists are named by their places."""
    root: dict[str, FormNode] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        found = PARAMETER_NAME.match(name)
        if found is None:
            raise ProcessorRefusal(f"Invalid parameter name: {name}", early=True)
        _put_in_tree(root, [found[1], *re.findall(r"\[([^\[\]]*)\]", found[2])], value)
    return root


def _put_in_tree(root: dict[str, FormNode], path: Sequence[str], value: str) -> None:
    node = root
    for step in path[:-1]:
        below = node.setdefault(step or str(len(node)), {})
        if isinstance(below, str):
            raise ProcessorRefusal(f"Invalid parameter: {path[0]}", param=path[0], early=True)
        node = below
    node[path[-1] or str(len(node))] = value


def invalid_parameter(message: str, param: str, code: str | None = None) -> ProcessorRefusal:
    """The refusal of a parameter, before the call begins."""
    return ProcessorRefusal(message, code=code, param=param, early=True)


class CallForm:
    """The parameters of a call, or of a part of them; `done` refuses those that nobody asked for."""

    def __init__(self, nodes: Mapping[str, FormNode], path: str = "") -> None:
        self._nodes, self._path = nodes, path
        self._read: set[str] = set()
        self._parts: list[CallForm] = []

    def at(self, name: str) -> str:
        """The parameter's whole name."""
        return f"{self._path}[{name}]" if self._path else name

    def has(self, name: str) -> bool:
        """Whether the parameter was sent, even empty."""
        return name in self._nodes

    def missing(self, name: str) -> ProcessorRefusal:
        where = self.at(name)
        return invalid_parameter(f"Missing required param: {where}.", where, "parameter_missing")

    def need(self, name: str, value: RowT | None) -> RowT:
        """The `value` of a parameter. Raises ProcessorRefusal where it was not sent."""
        if value is None:
            raise self.missing(name)
        return value

    def raw(self, name: str) -> str | None:
        """A plain value as it came, "" included."""
        self._read.add(name)
        node = self._nodes.get(name)
        if isinstance(node, dict):
            raise invalid_parameter(f"Invalid string: {group_text(node)}", self.at(name))
        return node

    def text(self, name: str, longest: int = 5000) -> str | None:
        """A text that is not empty; None where it was not sent."""
        value = self.raw(name)
        if value == "":
            where = self.at(name)
            text = (
                f"You passed an empty string for '{where}'. We assume empty values are an attempt to unset a parameter; however '{where}' "
                f"cannot be unset. You should remove '{where}' from your request or supply a non-empty value."
            )
            raise invalid_parameter(text, where, "parameter_invalid_empty")
        if value is not None and len(value) > longest:
            text = f"Invalid string: {value[:20]}...; must be at most {longest} characters"
            raise invalid_parameter(text, self.at(name), "parameter_invalid_string_blank")
        return value

    def need_text(self, name: str, longest: int = 5000) -> str:
        return self.need(name, self.text(name, longest))

    def integer(self, name: str, least: int | None = None, most: int | None = None) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        where = self.at(name)
        if not WHOLE_NUMBER.match(value):
            raise invalid_parameter(f"Invalid integer: {value}", where, "parameter_invalid_integer")
        if least is not None and int(value) < least:
            raise invalid_parameter(f"This value must be greater than or equal to {least}.", where, "parameter_invalid_integer")
        if most is not None and int(value) > most:
            raise invalid_parameter(
                f"This value must be less than or equal to {most} (it currently is '{value}').", where, "parameter_invalid_integer"
            )
        return int(value)

    def need_integer(self, name: str, least: int | None = None, most: int | None = None) -> int:
        return self.need(name, self.integer(name, least, most))

    def number(self, name: str) -> Decimal | None:
        value = self.text(name)
        try:
            found = None if value is None else Decimal(value)
        except InvalidOperation:
            found = Decimal("NaN")
        if found is not None and not found.is_finite():
            raise invalid_parameter(f"Invalid decimal: {value}", self.at(name), "parameter_invalid_number")
        return found

    def flag(self, name: str) -> bool | None:
        value = self.text(name)
        if value not in (None, "true", "false"):
            raise invalid_parameter(f"Invalid boolean: {value}", self.at(name))
        return None if value is None else value == "true"

    def choice(self, name: str, options: Sequence[str]) -> str | None:
        value = self.text(name)
        if value is not None and value not in options:
            listed = options[0] if len(options) == 1 else f"one of {', '.join(options[:-1])}, or {options[-1]}"
            raise invalid_parameter(f"Invalid {self.at(name)}: must be {listed}", self.at(name))
        return value

    def currency(self, name: str = "currency") -> str | None:
        """ISO 4217, in lower case whatever came."""
        value = self.text(name)
        if value is not None and value.lower() not in PROCESSOR_CURRENCIES:
            listed = ", ".join(sorted(PROCESSOR_CURRENCIES))
            raise invalid_parameter(
                f"Invalid currency: {value.lower()}. Stripe currently supports these currencies: {listed}", self.at(name)
            )
        return value and value.lower()

    def need_currency(self, name: str = "currency") -> str:
        return self.need(name, self.currency(name))

    def url(self, name: str) -> str | None:
        value = self.text(name)
        if value is not None and not is_web_address(value):
            raise invalid_parameter("Not a valid URL", self.at(name), "url_invalid")
        return value

    def email(self, name: str = "email") -> str | None:
        value = self.text(name, 512)
        if value is not None and not re.match(r"^[^@\s]+@[^@\s]+\.[^@\s.]+$", value):
            raise invalid_parameter(f"Invalid email address: {value}", self.at(name), "email_invalid")
        return value

    def part(self, name: str) -> "CallForm | None":
        """The parameters below this one; None where there are none."""
        self._read.add(name)
        node = self._nodes.get(name)
        if node is None or node == "":
            return None
        if isinstance(node, str):
            raise invalid_parameter("Invalid object", self.at(name))
        part = CallForm(node, self.at(name))
        self._parts.append(part)
        return part

    def parts(self, name: str) -> "list[CallForm]":
        self._read.add(name)
        node = self._nodes.get(name)
        if node is None or node == "":
            return []
        if isinstance(node, str) or any(not place.isdecimal() for place in node):
            raise invalid_parameter("Invalid array", self.at(name))
        found = [part for place in sorted(node, key=int) if (part := CallForm(node, self.at(name)).part(place))]
        self._parts.extend(found)
        return found

    def texts(self, name: str) -> list[str] | None:
        self._read.add(name)
        node = self._nodes.get(name)
        if node is None:
            return None
        if isinstance(node, str):
            if node == "":
                return []
            raise invalid_parameter("Invalid array", self.at(name))
        if any(isinstance(value, dict) for value in node.values()):
            raise invalid_parameter(f"Invalid string: {group_text(node)}", self.at(name))
        return [cast(str, node[place]) for place in node]

    def labels(self, name: str) -> dict[str, str]:
        """Texts by names that the caller chooses, empty texts included."""
        self._read.add(name)
        node = self._nodes.get(name)
        if node is None or node == "":
            return {}
        if isinstance(node, str) or any(isinstance(value, dict) for value in node.values()):
            raise invalid_parameter(f"Invalid object: {self.at(name)}", self.at(name))
        return {key: cast(str, value) for key, value in node.items()}

    def metadata(self, former: Mapping[str, str] | None = None) -> dict[str, str]:
        """The caller's metadata, merged with the former one; an empty text removes a key, or everything."""
        if self._nodes.get("metadata") == "":
            self._read.add("metadata")
            return {}
        given = self.labels("metadata")
        for key, value in given.items():
            if len(key) > METADATA_KEY_LIMIT:
                raise invalid_parameter(
                    f"Metadata keys can have up to {METADATA_KEY_LIMIT} characters; '{key}' has {len(key)}.", "metadata"
                )
            if len(value) > METADATA_VALUE_LIMIT:
                text = (
                    f"Metadata values can have up to {METADATA_VALUE_LIMIT} characters, "
                    f"but you passed in a value that is {len(value)} characters."
                )
                raise invalid_parameter(text, f"metadata[{key}]")
        merged = {key: value for key, value in {**(former or {}), **given}.items() if value != ""}
        if len(merged) > METADATA_LIMIT:
            raise invalid_parameter(f"You can only have up to {METADATA_LIMIT} metadata keys.", "metadata")
        return merged

    def names(self) -> list[str]:
        return list(self._nodes)

    def take_all(self) -> None:
        """Accepts every parameter; none has an effect."""
        self._read.update(self._nodes)

    def done(self) -> None:
        """Refuses parameters that were not read. `expand` is known everywhere."""
        for name in self._nodes:
            if name not in self._read and name != "expand":
                raise invalid_parameter(f"Received unknown parameter: {self.at(name)}", self.at(name), "parameter_unknown")
        for part in self._parts:
            part.inner_done()

    def inner_done(self) -> None:
        """As `done`, where `expand` means nothing."""
        if "expand" in self._nodes and "expand" not in self._read:
            raise invalid_parameter(f"Received unknown parameter: {self.at('expand')}", self.at("expand"), "parameter_unknown")
        self.done()


def is_web_address(value: str) -> bool:
    try:
        return re.match(r"^https?://[^\s/]+", value) is not None and bool(urlsplit(value).hostname)
    except ValueError:
        return False


def group_text(node: Mapping[str, FormNode]) -> str:
    return "{" + ", ".join(f'"{key}"=>"..."' for key in node) + "}"


@dataclass(slots=True)
class ApiCall:
    """`account` is whose books it is about; `on_behalf` when those are a connected account's."""

    state: ProcessorState
    account: str
    key: str
    path: str
    ids: tuple[str, ...] = ()
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def book(self) -> AccountBook:
        return self.state.book(self.account)

    @property
    def owner(self) -> ProcessorAccount:
        return self.state.accounts[self.account]

    @property
    def on_behalf(self) -> bool:
        """Whether the platform acts in a connected account."""
        return self.account != self.state.platform


ApiHandler: TypeAlias = Callable[[ApiCall, CallForm], JsonObject]


def find_row(rows: Mapping[str, RowT], id: str, kind: str, *, param: str = "id", status: int = 404) -> RowT:
    """The row of that id. Raises ProcessorRefusal with `status` where there is none: it names the `kind` and the parameter `param`."""
    row = rows.get(id)
    if row is None:
        raise missing_row(kind, id, param=param, status=status, early=True)
    return row


StoredT = TypeVar("StoredT", bound=StoredRow)


@dataclass(frozen=True, slots=True)
class ApiNoun(Generic[StoredT]):
    """A noun of the API, and the calls that are the same for every noun."""

    kind: str
    """What refusals call it."""
    path: str
    """Where its list is, below /v1/."""
    rows: Callable[[AccountBook], dict[str, StoredT]]
    render: Callable[[ProcessorState, str, StoredT], JsonObject]
    """A row of an account (its id is the second argument) as it goes over the wire."""
    param: str = "id"
    """The parameter that refusals name where the path names no row."""
    filters: Mapping[str, str] = field(default_factory=dict[str, str])
    """The parameters of its list, each with the attribute of a row that it is compared with."""
    choices: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    """The values that a filter may have, where only some make sense."""

    def find(self, call: ApiCall) -> StoredT:
        """The row that the path names. Raises ProcessorRefusal (404) where there is none."""
        return find_row(self.rows(call.book), call.ids[0], self.kind, param=self.param)

    def answer(self, call: ApiCall, row: StoredT) -> JsonObject:
        return self.render(call.state, call.account, row)

    def retrieve(self, call: ApiCall, form: CallForm) -> JsonObject:
        """The row that the path names, as an answer."""
        form.done()
        return self.answer(call, self.find(call))

    def list(self, call: ApiCall, form: CallForm, fits: Callable[[StoredT], bool] = lambda _: True) -> JsonObject:
        """A page of the rows that the filters and `fits` take, newest first. The caller has read its own filters from `form`."""
        given = {name: form.choice(name, self.choices[name]) if name in self.choices else form.text(name) for name in self.filters}
        wanted = {self.filters[name]: text for name, text in given.items() if text is not None}
        found = {id: row for id, row in self.rows(call.book).items() if fits(row)}
        rows = {id: row for id, row in found.items() if all(getattr(row, attribute) == text for attribute, text in wanted.items())}
        return list_page(
            form, rows, lambda row: self.answer(call, row), url=f"/v1/{self.path}", kind=self.kind, when=lambda row: row.created
        )

    def notify(self, state: ProcessorState, account: str, row: StoredT, *types: str, previous: JsonObject | None = None) -> None:
        """Emit an event of each type about a row. `previous`: the members that have changed, as they were."""
        for type in types:
            emit_event(state, type, self.render(state, account, row), account, previous)

    def change(self, call: ApiCall, row: StoredT, *types: str) -> JsonObject:
        """The answer of a call that changed or made a row, which it keeps and of which it emits events."""
        self.rows(call.book)[row.id] = row
        self.notify(call.state, call.account, row, *types)
        return self.answer(call, row)


def list_page(
    form: CallForm, rows: Mapping[str, RowT], render: Callable[[RowT], JsonObject], *, url: str, kind: str, when: Callable[[RowT], int]
) -> JsonObject:
    """A page of a list, newest first. Filters of the noun are read before."""
    limit = form.integer("limit", 1, LIST_LIMIT) or USUAL_LIST_LENGTH
    after, before = form.text("starting_after"), form.text("ending_before")
    fits = created_filter(form)
    form.done()
    if after is not None and before is not None:
        raise invalid_parameter(
            "You cannot parameterize both starting_after and ending_before. You should use one or the other.", "starting_after"
        )
    newest = sorted((id for id in reversed(list(rows)) if fits(when(rows[id]))), key=lambda id: -when(rows[id]))
    for name, cursor in (("starting_after", after), ("ending_before", before)):
        if cursor is not None and cursor not in newest:
            raise missing_row(kind, cursor, param=name, status=400, early=True)
    if before is not None:
        rest = newest[: newest.index(before)]
        shown, more = rest[-limit:], len(rest) > limit
    else:
        rest = newest if after is None else newest[newest.index(after) + 1 :]
        shown, more = rest[:limit], len(rest) > limit
    return list_object([render(rows[id]) for id in shown], url, more=more)


def created_filter(form: CallForm) -> Callable[[int], bool]:
    """The filter by time: one moment, or bounds."""
    if not form.has("created"):
        return lambda _: True
    try:
        exact = form.integer("created")
    except ProcessorRefusal:
        part = form.part("created")
        if part is None:
            raise
        bounds = {name: part.integer(name) for name in ("gt", "gte", "lt", "lte")}
        return lambda at: _within_bounds(at, bounds)
    return lambda at: at == exact


def _within_bounds(at: int, bounds: Mapping[str, int | None]) -> bool:
    gt, gte, lt, lte = (bounds[name] for name in ("gt", "gte", "lt", "lte"))
    above = (gt is None or at > gt) and (gte is None or at >= gte)
    return above and (lt is None or at < lt) and (lte is None or at <= lte)


def list_object(data: list[JsonObject], url: str, *, more: bool = False) -> JsonObject:
    return {"object": "list", "data": data, "has_more": more, "url": url}


def null_members(names: str) -> JsonObject:
    return {name: None for name in names.split()}  # noqa: C420


def row_members(row: object, names: str) -> JsonObject:
    """The members that the wire calls as `row` does."""
    return {name: getattr(row, name) for name in names.split()}


def labelled_json(state: ProcessorState, row: LabelledRow, object: str, names: str) -> JsonObject:
    """The members that the wire calls as `row` does, and those of every noun with metadata."""
    return {**row_members(row, names), "object": object, "livemode": state.live, "metadata": dict(row.metadata)}
