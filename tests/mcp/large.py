"""An operation whose answer is long."""

from typing_extensions import TypedDict

from operations.deps import Ctx
from registry.operation import Nothing, operation

SIZE = 700_000


class Text(TypedDict):
    text: list[str]


@operation("GET", "/v1/texts")
async def get_text(ctx: Ctx, params: Nothing) -> Text:
    """Answer with a long text."""
    del ctx, params
    return {"text": ["x" * 1000] * (SIZE // 1000)}
