"""What is worth knowing about a fleet at the moment."""

from asyncio import timeout
from contextlib import aclosing
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict

from clients.model.failure import ModelError
from clients.model.port import Delta, Message, Model
from operations.assistant.allowance import Allowance, read_allowance, reserve_call
from operations.assistant.cards import INSTRUCTION, Card, measured_cards, question, written_cards
from operations.assistant.figures import Gathered, gather
from operations.deps import Ctx
from registry.model import CamelInput
from registry.operation import Example, operation

MODEL_SECONDS = 60.0


class Whose(CamelInput):
    """Which part of the fleet."""

    account_id: Annotated[int | None, Field(ge=1, description="Only of this account; absent: all of yours.")] = None


class Insights(TypedDict):
    """Cards about the fleet, and who wrote them."""

    generated: Annotated[Literal["ai", "measured"], Field(description="Whether a model wrote them, or they are the figures alone")]
    cards: Annotated[list[Card], Field(description="The most important first")]
    quota: Annotated[Allowance, Field(description="AI calls after this one")]


EXAMPLE: Insights = {
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


@operation("POST", "/v1/ai/insights", reaches_out=True, title="Get insights", examples=[Example("Of all accounts", {}, EXAMPLE)])
async def ai_insights(ctx: Ctx, params: Whose) -> Insights:
    """Get cards about the state of the fleet, from figures that were just measured.

    `generated` is `ai` when a model wrote them; every number in them is among `figures`. Without a model, without AI calls left, or when
    something fails they are `measured`: the figures alone. It is never an error.

    The figures come from other operations, called as you: fleet_health, list_subscribers, list_reseller_accounts and
    esim_status_per_account; all of it is one call of your quota. One that refuses is named in a card of the kind `note`. A model is given
    those figures alone, no name and no text; asking it spends one AI call, and what it writes is dropped when a number in it was not
    measured.
    """
    gathered = await gather(ctx, params.account_id)
    cards = await written(ctx, ctx.deps.model, gathered) if ctx.deps.model is not None and gathered.measured else None
    return {
        "generated": "measured" if cards is None else "ai",
        "cards": measured_cards(gathered) if cards is None else cards,
        "quota": await read_allowance(ctx),
    }


async def written(ctx: Ctx, model: Model, gathered: Gathered) -> list[Card] | None:
    """The model's cards; None when it may not be asked, fails, or says what was not measured."""
    if await reserve_call(ctx) is None:
        return None
    asked = [Message("system", INSTRUCTION), Message("user", question(gathered))]
    said: list[str] = []
    try:
        async with timeout(MODEL_SECONDS), aclosing(model.answer(asked, [])) as pieces:
            async for piece in pieces:
                if isinstance(piece, Delta):
                    said.append(piece.text)
    except (ModelError, TimeoutError):
        return None
    return written_cards("".join(said), gathered.measured)
