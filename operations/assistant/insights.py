"""Cards about a fleet: figures that other operations measured, and what a language model writes about them."""

import re
from asyncio import timeout
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from decimal import Decimal, InvalidOperation
from typing import Annotated, Literal, NamedTuple, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from clients.model.port import ChatMessage, LanguageModel, ModelError, TextDelta
from operations.assistant.quota import Allowance, read_ai_allowance, reserve_ai_call
from operations.deps import Ctx
from registry.free_text import FreeText
from registry.operation import CamelInput, Example, operation

_FigureJson = Mapping[str, object]
CardKind = Literal["health", "fleet", "stock", "balance", "note"]
_LINES_PAGE = 1000
_MOST_FIGURES_OF_SOURCE = 24
# What a charging system says beyond it is no amount of anything, and no number that a sentence can hold.
_LARGEST_FIGURE = 1e15
_LINE_STATE_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}")
_ACCOUNT_UNITS = {"free_esims": "", "stock_days": "days", "spent_daily": "EUR", "balance_days": "days"}


class MeasuredFigure(TypedDict):
    """A number that was measured."""

    name: Annotated[str, Field(description="What it is")]
    value: Annotated[float, Field(description="The number")]
    unit: Annotated[str, Field(description="What it counts or is measured in; empty where the name says it")]


class MeasuredSource(NamedTuple):
    """The figures of one operation."""

    kind: CardKind
    title: str
    figures: list[MeasuredFigure]


class FigureSource(NamedTuple):
    """An operation that figures are read from, and how."""

    operation: str
    kind: CardKind
    title: str
    arguments: Mapping[str, object]
    read: Callable[[_FigureJson], Sequence[MeasuredFigure | None]]
    """The figures in an answer; None for one that is not told."""


class GatheredFigures(NamedTuple):
    """The figures, and the operations that did not answer, with their codes."""

    measured: list[MeasuredSource]
    refused: dict[str, str]


def _health_figures(body: _FigureJson) -> list[MeasuredFigure | None]:
    figures = [_measured_figure("lines looked into", body.get("sampled")), _measured_figure("lines", body.get("of"))]
    data = _json_members(body.get("data"))
    figures.append(_measured_figure("score", data.get("score"), "of 100"))
    figures += [
        _measured_figure(f"lines {name.replace('_', ' ')}", value)
        for name, value in _json_members(data.get("lines")).items()
        if _LINE_STATE_NAME.fullmatch(name)
    ]
    accounts = data.get("accounts")
    if isinstance(accounts, list) and len(cast("list[object]", accounts)) == 1:
        account = _json_members(cast("list[object]", accounts)[0])
        figures += [_measured_figure(name.replace("_", " "), account.get(name), unit) for name, unit in _ACCOUNT_UNITS.items()]
    return figures


def _fleet_figures(body: _FigureJson) -> Sequence[MeasuredFigure]:
    statuses = Counter(_line_status_word(row) for row in _json_rows(body))
    total: list[MeasuredFigure] = [{"name": "lines", "value": statuses.total(), "unit": ""}]
    return total + [{"name": status, "value": count, "unit": "lines"} for status, count in statuses.most_common(6)]


def _line_status_word(row: _FigureJson) -> str:
    word = str(row.get("currentStatus") or "").lower()
    return word if word in {"active", "inactive", "suspended", "pending", "disconnected", "end of life"} else "other"


def _balance_figures(body: _FigureJson) -> list[MeasuredFigure | None]:
    found = _json_rows(body)
    money = [value for row in found if (value := row.get("balance")) is not None and isinstance(value, (int, float))]
    return [_measured_figure("accounts", len(found)), _measured_figure("balance", round(sum(money), 2), "EUR")]


def _stock_figures(body: _FigureJson) -> list[MeasuredFigure | None]:
    data = _json_members(body.get("data"))
    return [_measured_figure(shown, data.get(name)) for name, shown in _STOCK_NAMES.items()]


_STOCK_NAMES = {"free": "free eSIMs", "affected": "eSIMs in use", "total": "eSIMs"}
_LINES_QUERY = {"limit": _LINES_PAGE, "fields": ["currentStatus"]}
_FIGURE_SOURCES: Sequence[FigureSource] = (
    FigureSource("fleet_health", "health", "Health of the fleet", {"limit": 500}, _health_figures),
    FigureSource("list_subscribers", "fleet", "Lines", _LINES_QUERY, _fleet_figures),
    FigureSource("list_reseller_accounts", "balance", "Accounts", {}, _balance_figures),
)
_STOCK_SOURCE = FigureSource("esim_status_per_account", "stock", "eSIMs in stock", {}, _stock_figures)


async def gather_figures(ctx: Ctx, account_id: int | None) -> GatheredFigures:
    """Everything that can be measured, of one account or of all; what is refused is left out and said."""
    account = {} if account_id is None else {"accountId": account_id}
    gathered = GatheredFigures([], {})
    for source in _FIGURE_SOURCES:
        arguments = {**source.arguments, **(account if source.operation != "list_reseller_accounts" else {})}
        body = await _ask_source(ctx, source, arguments, gathered)
        if source.operation == "list_reseller_accounts" and body is not None:
            ids = [row.get("id") for row in _json_rows(body)] if account_id is None else [account_id]
            if len(ids) == 1 and isinstance(ids[0], int):
                await _ask_source(ctx, _STOCK_SOURCE, {"accountId": ids[0]}, gathered)
    return gathered


async def _ask_source(ctx: Ctx, source: FigureSource, arguments: Mapping[str, object], gathered: GatheredFigures) -> _FigureJson | None:
    inside = ctx.deps.internal_calls
    if source.operation not in inside.pipeline.catalogue.operations:
        return None
    reply = await inside.call(
        source.operation, arguments, caller=ctx.caller, surface="assistant", progress=ctx.progress, prepaid_by_parent=True
    )
    body = _json_members(cast(object, orjson.loads(reply.body)))
    if reply.status >= 400:
        gathered.refused[source.operation] = str(body.get("code"))
        return None
    if reply.next_cursor is None:  # the first page of a list says nothing of the whole
        figures = [figure for figure in source.read(body) if figure is not None]
        gathered.measured.append(MeasuredSource(source.kind, source.title, figures[:_MOST_FIGURES_OF_SOURCE]))
    return body


def _measured_figure(name: str, value: object, unit: str = "") -> MeasuredFigure | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not -_LARGEST_FIGURE <= value <= _LARGEST_FIGURE:
        return None
    return {"name": name, "value": value, "unit": unit}


def _json_members(value: object) -> _FigureJson:
    return cast(_FigureJson, value) if isinstance(value, dict) else {}


def _json_rows(body: _FigureJson) -> list[_FigureJson]:
    data = body.get("data")
    return [_json_members(row) for row in cast("list[object]", data)] if isinstance(data, list) else []


MOST_CARDS = 6
_LONGEST_CARD_TITLE, _LONGEST_CARD_TEXT = 80, 400
_NUMBER_IN_CARD = re.compile(r"[0-9]+(?:[.,'\u00a0\u202f][0-9]+)*")
_SPACED_THOUSANDS = re.compile(r"(?<=[0-9])[ \u2009](?=[0-9]{3}(?![0-9]))")
# Figures that are spelled out cannot be held to what was measured. Choice: English words only; `one` is mostly a pronoun.
_SPELLED_NUMBER = re.compile(
    r"\b(two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundreds?"
    r"|thousands?|millions?|billions?|dozens?|half|third|quarter|twice|double[sd]?|triple[sd]?)\b",
    re.IGNORECASE,
)
_LINK_OR_MARKUP = re.compile(r"://|www\.|@|[<>`]")
_CARD_INSTRUCTION = """\
You write short cards for a reseller of mobile data about their fleet, from the measured figures in the user's message and nothing else.
Answer with one JSON object: {"cards": [{"title", "text", "kind", "figures"}]}, at most 6 cards, no other text.
title: at most 80 characters. text: one or two sentences, at most 400 characters, what the figures mean and what to look at.
kind: one of the kinds in the message. figures: the names of the figures that the card is about.
Write every number with digits and exactly as it was measured: no sums, percentages or roundings of your own, no links, no markup."""


class Card(TypedDict):
    """One thing to know."""

    title: Annotated[FreeText, Field(description="At most 80 characters")]
    text: Annotated[FreeText, Field(description="One or two sentences")]
    kind: Annotated[CardKind, Field(description="What it is about: health, fleet, stock, balance or note")]
    figures: Annotated[list[MeasuredFigure], Field(description="The measured figures behind it")]


def _measured_cards(gathered: GatheredFigures) -> list[Card]:
    """The figures as they are. Where there are none, a card says so."""
    cards: list[Card] = [
        {"title": each.title, "text": _figures_sentence(each.figures), "kind": each.kind, "figures": each.figures}
        for each in gathered.measured
        if each.figures
    ]
    if gathered.refused or not cards:
        cards.append(_missing_figures_card(gathered))
    return cards


def _figures_sentence(figures: Sequence[MeasuredFigure]) -> str:
    parts = [f"{figure['name'].replace('_', ' ')}: {_plain_number(figure['value'])} {figure['unit']}".rstrip() for figure in figures[:8]]
    return "; ".join(parts) + "."


def _missing_figures_card(gathered: GatheredFigures) -> Card:
    """What could not be measured, and why, in words of ours."""
    why = ", ".join(f"{operation} ({code})" for operation, code in gathered.refused.items())
    title = "Some figures are missing" if gathered.measured else "No figures"
    text = f"These operations did not answer: {why}. Call them to see what is wrong." if why else "There is nothing to measure."
    return {"title": title, "text": text, "kind": "note", "figures": []}


def _parse_cards(text: str, measured: Sequence[MeasuredSource]) -> list[Card] | None:
    """The model's cards in `text`; None unless all are cards and every number in them was measured."""
    try:
        found = cast(object, orjson.loads(text[text.find("{") : text.rfind("}") + 1]))
    except orjson.JSONDecodeError:
        return None
    given = _json_members(found).get("cards")
    if not isinstance(given, list) or not 1 <= len(cast("list[object]", given)) <= MOST_CARDS:
        return None
    cards = [_parse_card(_json_members(each), measured) for each in cast("list[object]", given)]
    whole = [each for each in cards if each is not None]
    return whole if len(whole) == len(cards) else None


def _parse_card(given: _FigureJson, measured: Sequence[MeasuredSource]) -> Card | None:
    title, text, kind, names = (given.get(name) for name in ("title", "text", "kind", "figures"))
    of_kind: dict[str, CardKind] = {each.kind: each.kind for each in measured}
    if not (isinstance(title, str) and isinstance(text, str) and isinstance(kind, str) and kind in of_kind and isinstance(names, list)):
        return None
    title, text = title.strip(), text.strip()
    wanted = [name for name in cast("list[object]", names) if isinstance(name, str)]
    figures = [figure for each in measured for figure in each.figures if figure["name"] in wanted]
    fits = 1 <= len(title) <= _LONGEST_CARD_TITLE and 1 <= len(text) <= _LONGEST_CARD_TEXT and bool(figures)
    if not fits or not all(_holds_to_figures(part, measured) for part in (title, text)):
        return None
    return Card(title=title, text=text, kind=of_kind[kind], figures=figures)


def _holds_to_figures(text: str, measured: Sequence[MeasuredSource]) -> bool:
    """Every number in the text is one that was measured, and the text leads nowhere."""
    if _LINK_OR_MARKUP.search(text) or _SPELLED_NUMBER.search(text) or any(c.isnumeric() and not c.isascii() for c in text):
        return False
    known = {value for each in measured for figure in each.figures for value in _figure_values(figure)}
    return all(_number_readings(found) & known for found in _NUMBER_IN_CARD.findall(_SPACED_THOUSANDS.sub("", text)))


def _figure_values(figure: MeasuredFigure) -> Iterator[Decimal]:
    """A figure's value and its usual roundings, and the numbers in its name."""
    exact = Decimal(str(figure["value"])).normalize()
    yield from (abs(value).normalize() for value in (exact, round(exact, 2), round(exact, 1), round(exact, 0)))
    yield from (Decimal(found).normalize() for found in re.findall(r"[0-9]+", figure["name"]))


def _number_readings(text: str) -> set[Decimal]:
    """The values that `text` may mean: separators may group thousands, and the last one may begin the decimals."""
    parts = re.split(r"[^0-9]", text)
    grouped = len(parts) > 1 and all(len(part) == 3 for part in parts[1:])
    found = {"".join(parts)} if len(parts) == 1 or grouped else set[str]()
    if len(parts) > 1 and all(len(part) == 3 for part in parts[1:-1]):
        found.add("".join(parts[:-1]) + "." + parts[-1])
    return {value for each in found if (value := _sane_decimal(each)) is not None}


def _sane_decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text).normalize() if len(text) <= 30 else None
    except InvalidOperation:
        return None


def _plain_number(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)


INSIGHTS_MODEL_SECONDS = 60.0


class Whose(CamelInput):
    """Which part of the fleet."""

    account_id: Annotated[int | None, Field(ge=1, description="Only of this account; absent: all of yours.")] = None


class Insights(TypedDict):
    """Cards about the fleet, and who wrote them."""

    generated: Annotated[Literal["ai", "measured"], Field(description="Whether a model wrote them, or they are the figures alone")]
    cards: Annotated[list[Card], Field(description="The most important first")]
    quota: Annotated[Allowance, Field(description="AI calls after this one")]


_INSIGHTS_EXAMPLE: Insights = {
    "generated": "measured",
    "cards": [
        {
            "title": "Accounts",
            "text": "accounts: 1; balance: 386.69 EUR.",
            "kind": "balance",
            "figures": [
                {"name": "accounts", "value": 1, "unit": ""},
                {"name": "balance", "value": 386.69, "unit": "EUR"},
            ],
        }
    ],
    "quota": {"limit": 200, "used": 3, "remaining": 197, "resets_at": "2027-01-16T00:00:00Z"},
}


@operation("POST", "/v1/ai/insights", reaches_out=True, title="Get insights", examples=[Example("Of all accounts", {}, _INSIGHTS_EXAMPLE)])
async def ai_insights(ctx: Ctx, params: Whose) -> Insights:
    """Get cards about the state of the fleet, from figures that were just measured.

    `generated` is `ai` when a model wrote them; every number in them is among `figures`. Without a model, without AI calls left, or when
    something fails they are `measured`: the figures alone. It is never an error.

    The figures come from other operations, called as you: fleet_health, list_subscribers, list_reseller_accounts and
    esim_status_per_account; all of it is one call of your quota. One that refuses is named in a card of the kind `note`. A model is given
    those figures alone, no name and no text; asking it spends one AI call, and what it writes is dropped when a number in it was not
    measured.
    """
    gathered = await gather_figures(ctx, params.account_id)
    cards = await _cards_of_model(ctx, ctx.deps.model, gathered) if ctx.deps.model is not None and gathered.measured else None
    return {
        "generated": "measured" if cards is None else "ai",
        "cards": _measured_cards(gathered) if cards is None else cards,
        "quota": await read_ai_allowance(ctx),
    }


async def _cards_of_model(ctx: Ctx, model: LanguageModel, gathered: GatheredFigures) -> list[Card] | None:
    """The model's cards; None when it may not be asked, fails, or says what was not measured."""
    if await reserve_ai_call(ctx) is None:
        return None
    shown = [{"kind": each.kind, "title": each.title, "figures": each.figures} for each in gathered.measured]
    question = orjson.dumps({"kinds": sorted({each.kind for each in gathered.measured}), "measured": shown}).decode()
    asked = [ChatMessage("system", _CARD_INSTRUCTION), ChatMessage("user", question)]
    said: list[str] = []
    try:
        async with timeout(INSIGHTS_MODEL_SECONDS), aclosing(model.answer(asked, [])) as pieces:
            async for piece in pieces:
                if isinstance(piece, TextDelta):
                    said.append(piece.text)
    except (ModelError, TimeoutError):
        return None
    return _parse_cards("".join(said), gathered.measured)
