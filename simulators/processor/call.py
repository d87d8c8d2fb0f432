"""One call of the API: who asks, in which account, and what it is told."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias, TypeVar

from simulators.processor.entities import ProcessorAccount
from simulators.processor.form import CallForm, invalid_parameter
from simulators.processor.refusal import JsonObject, ProcessorRefusal
from simulators.processor.state import AccountBook, ProcessorState

RowT = TypeVar("RowT")
LIST_LIMIT, USUAL_LIST_LENGTH = 100, 10


class ApiAnswer(NamedTuple):
    """What goes back."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class ApiCall:
    """`account` is whose books it is about; `on_behalf` when those are a connected account's."""

    state: ProcessorState
    account: str
    key: str
    path: str
    ids: tuple[str, ...] = ()
    version: str = ""
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def book(self) -> AccountBook:
        """What the account holds."""
        return self.state.book(self.account)

    @property
    def owner(self) -> ProcessorAccount:
        """The account."""
        return self.state.accounts[self.account]

    @property
    def on_behalf(self) -> bool:
        """The platform acts in a connected account."""
        return self.account != self.state.platform


ApiHandler: TypeAlias = Callable[[ApiCall, CallForm], JsonObject]


def find_row(rows: Mapping[str, RowT], id: str, kind: str, *, param: str = "id", status: int = 404) -> RowT:
    """The thing of that id in this account."""
    row = rows.get(id)
    if row is None:
        raise ProcessorRefusal(f"No such {kind}: '{id}'", status=status, code="resource_missing", param=param, early=True)
    return row


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
            raise ProcessorRefusal(f"No such {kind}: '{cursor}'", code="resource_missing", param=name, early=True)
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
        return lambda at: within_bounds(at, bounds)
    return lambda at: at == exact


def within_bounds(at: int, bounds: Mapping[str, int | None]) -> bool:
    """Between the bounds that are given."""
    gt, gte, lt, lte = (bounds[name] for name in ("gt", "gte", "lt", "lte"))
    above = (gt is None or at > gt) and (gte is None or at >= gte)
    return above and (lt is None or at < lt) and (lte is None or at <= lte)


def list_object(data: list[JsonObject], url: str, *, more: bool = False) -> JsonObject:
    """A list as it goes over the wire."""
    return {"object": "list", "data": data, "has_more": more, "url": url}


def null_members(names: str) -> JsonObject:
    """Members that hold nothing."""
    return {name: None for name in names.split()}  # noqa: C420
