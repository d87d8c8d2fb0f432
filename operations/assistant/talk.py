"""A chat with the model: its turns, and between them the tools that it asked for."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from clients.model.failure import ModelError, ModelFailure
from clients.model.port import Delta, Message, Model, ToolCall
from operations.assistant.prompt import ENOUGH, prompt
from operations.assistant.tools import Toolbox

ROUNDS = 8
CALLS = 24
CHARACTERS = 120_000
"""Of all answers of tools in one chat: some 30,000 tokens."""


class Talk:
    """One chat under way. The conversation lives as long as this does, and nowhere else."""

    def __init__(self, model: Model, toolbox: Toolbox, said: Sequence[Message], *, now: float, name: str | None) -> None:
        self._model, self._toolbox, self._name = model, toolbox, name
        self._messages = [Message("system", prompt(now, rounds=ROUNDS, calls=CALLS)), *said]

    async def texts(self) -> AsyncGenerator[str]:
        """The answer's text as it is made. Raises ModelError."""
        for _ in range(ROUNDS):
            calls: list[ToolCall] = []
            async with aclosing(self._turn(calls, tools=True)) as texts:
                async for text in texts:
                    yield text
            if not calls:
                return
            await self._use(calls)
            if self._toolbox.empty:
                break
        self._messages.append(Message("system", ENOUGH))
        last: list[ToolCall] = []
        async with aclosing(self._turn(last, tools=False)) as texts:
            async for text in texts:
                yield text
        if last:
            raise ModelError(ModelFailure.TOO_LONG, hint=f"It used {ROUNDS} rounds of tools and asked for more; ask for less at once")

    async def _turn(self, calls: list[ToolCall], *, tools: bool) -> AsyncGenerator[str]:
        """One turn of the model, which is remembered."""
        said: list[str] = []
        specs = self._toolbox.specs if tools else []
        async with aclosing(self._model.answer(self._messages, specs, model=self._name)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Delta):
                    said.append(piece.text)
                    yield piece.text
                else:
                    calls.append(piece)
        self._messages.append(Message("assistant", "".join(said), tuple(calls)))

    async def _use(self, calls: Sequence[ToolCall]) -> None:
        for call in calls:
            self._messages.append(Message("tool", await self._toolbox.use(call), call_id=call.id))
