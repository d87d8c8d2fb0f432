"""The figures that insights are made of: measured by other operations, called for whoever asks. Numbers and names of ours, never texts."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx

Json = Mapping[str, object]
Kind = Literal["health", "fleet", "stock", "balance", "note"]
PAGE = 1000
MOST_FIGURES = 24
# What a charging system says beyond it is no amount of anything, and no number that a sentence can hold.
LARGEST = 1e15
OURS = re.compile(r"[a-z][a-z0-9_]{0,40}")
OF_ACCOUNT = {"free_esims": "", "stock_days": "days", "spent_daily": "EUR", "balance_days": "days"}


class MeasuredFigure(TypedDict):
    """A number that was measured."""

    name: Annotated[str, Field(description="What it is")]
    value: Annotated[float, Field(description="The number")]
    unit: Annotated[str, Field(description="What it counts or is measured in; empty where the name says it")]


class Measured(NamedTuple):
    """What one operation told."""

    kind: Kind
    title: str
    figures: list[MeasuredFigure]


class Source(NamedTuple):
    """An operation that figures are read from, and how."""

    operation: str
    kind: Kind
    title: str
    arguments: Mapping[str, object]
    read: Callable[[Json], list[MeasuredFigure]]


class Gathered(NamedTuple):
    """The figures, and the operations that did not answer, with their codes."""

    measured: list[Measured]
    refused: dict[str, str]


def health(body: Json) -> list[MeasuredFigure]:
    """The score, the lines, and how long the money and the eSIMs of an only account last."""
    figures = [number("lines looked into", body.get("sampled")), number("lines", body.get("of"))]
    data = members(body.get("data"))
    figures.append(number("score", data.get("score"), "of 100"))
    figures += [
        number(f"lines {name.replace('_', ' ')}", value) for name, value in members(data.get("lines")).items() if OURS.fullmatch(name)
    ]
    accounts = data.get("accounts")
    if isinstance(accounts, list) and len(cast("list[object]", accounts)) == 1:
        account = members(cast("list[object]", accounts)[0])
        figures += [number(name.replace("_", " "), account.get(name), unit) for name, unit in OF_ACCOUNT.items()]
    return [figure for figure in figures if figure is not None]


def fleet(body: Json) -> list[MeasuredFigure]:
    """Lines by status."""
    statuses = Counter(status_of(row) for row in rows(body))
    total: list[MeasuredFigure] = [{"name": "lines", "value": statuses.total(), "unit": ""}]
    return total + [{"name": status, "value": count, "unit": "lines"} for status, count in statuses.most_common(6)]


def status_of(row: Json) -> str:
    """The word of the status, of those there are."""
    word = str(row.get("currentStatus") or "").lower()
    return word if word in {"active", "inactive", "suspended", "pending", "disconnected", "end of life"} else "other"


def balances(body: Json) -> list[MeasuredFigure]:
    """Accounts and their money."""
    found = rows(body)
    money = [value for row in found if (value := row.get("balance")) is not None and isinstance(value, (int, float))]
    figures = [number("accounts", len(found)), number("balance", round(sum(money), 2), "EUR")]
    return [figure for figure in figures if figure is not None]


def stock(body: Json) -> list[MeasuredFigure]:
    """Free and used eSIMs of an account."""
    data = members(body.get("data"))
    found = [number(shown, data.get(name)) for name, shown in STOCKED.items()]
    return [figure for figure in found if figure is not None]


STOCKED = {"free": "free eSIMs", "affected": "eSIMs in use", "total": "eSIMs"}
LINES = {"limit": PAGE, "fields": ["currentStatus"]}
SOURCES: Sequence[Source] = (
    Source("fleet_health", "health", "Health of the fleet", {"limit": 500}, health),
    Source("list_subscribers", "fleet", "Lines", LINES, fleet),
    Source("list_reseller_accounts", "balance", "Accounts", {}, balances),
)
STOCK = Source("esim_status_per_account", "stock", "eSIMs in stock", {}, stock)


async def gather(ctx: Ctx, account_id: int | None) -> Gathered:
    """Everything that can be measured, of one account or of all; what is refused is left out and said."""
    account = {} if account_id is None else {"accountId": account_id}
    gathered = Gathered([], {})
    for source in SOURCES:
        arguments = {**source.arguments, **(account if source.operation != "list_reseller_accounts" else {})}
        body = await ask(ctx, source, arguments, gathered)
        if source.operation == "list_reseller_accounts" and body is not None:
            ids = [row.get("id") for row in rows(body)] if account_id is None else [account_id]
            if len(ids) == 1 and isinstance(ids[0], int):
                await ask(ctx, STOCK, {"accountId": ids[0]}, gathered)
    return gathered


async def ask(ctx: Ctx, source: Source, arguments: Mapping[str, object], gathered: Gathered) -> Json | None:
    """One operation; its answer."""
    inside = ctx.deps.inside
    if source.operation not in inside.pipeline.catalogue.operations:
        return None
    reply = await inside.call(source.operation, arguments, caller=ctx.caller, surface="assistant", progress=ctx.progress, covered=True)
    body = members(cast(object, orjson.loads(reply.body)))
    if reply.status >= 400:
        gathered.refused[source.operation] = str(body.get("code"))
        return None
    if reply.next_cursor is None:  # the first page of a list says nothing of the whole
        gathered.measured.append(Measured(source.kind, source.title, source.read(body)[:MOST_FIGURES]))
    return body


def number(name: str, value: object, unit: str = "") -> MeasuredFigure | None:
    """A figure, if it is a number of a sane size."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -LARGEST <= value <= LARGEST:
        return None
    return {"name": name, "value": value, "unit": unit}


def members(value: object) -> Json:
    """An object's members; nothing else has any."""
    return cast(Json, value) if isinstance(value, dict) else {}


def rows(body: Json) -> list[Json]:
    """The rows of a list."""
    data = body.get("data")
    return [members(row) for row in cast("list[object]", data)] if isinstance(data, list) else []
