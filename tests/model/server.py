"""A client of a simulated endpoint on loopback."""

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from clients.model.client import ModelClient
from clients.model.port import ChatMessage, ModelSettings, TextDelta, ToolCall, ToolSpec
from registry.clock import SystemClock
from simulators.model.server import ModelFault, ModelScript, ModelServer, ModelTurn, model_server

QUESTION = [ChatMessage("system", "Be brief."), ChatMessage("user", "How are you?")]
TOOL = ToolSpec("look", "Look somewhere.", {"type": "object", "properties": {"where": {"type": "string"}}})
QUICK_MODEL = ModelSettings("", ("small-1", "large-1"), "sk-secret-of-ours", repeats=0)


@asynccontextmanager
async def client_of(script: ModelScript, settings: ModelSettings = QUICK_MODEL) -> AsyncGenerator[tuple[ModelClient, ModelServer]]:
    async with model_server(script, key=settings.key) as (url, server):
        client = ModelClient(replace(settings, url=url), SystemClock())
        try:
            yield client, server
        finally:
            await client.aclose()


def saying(text: str, fault: ModelFault = "") -> ModelScript:
    return lambda heard: ModelTurn(text, fault=fault)


async def whole_answer(client: ModelClient, said: list[TextDelta | ToolCall] | None = None) -> list[TextDelta | ToolCall]:
    found = [] if said is None else said
    async with aclosing(client.answer(QUESTION, [TOOL])) as pieces:
        async for piece in pieces:
            found.append(piece)
    return found
