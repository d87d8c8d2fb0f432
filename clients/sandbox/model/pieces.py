"""A turn as the pieces of the chat-completions wire: text by words, the arguments of a tool call cut anywhere."""

import json
from collections.abc import Iterator

from clients.sandbox.model.script import Json, Turn, Use

ARGUMENT_PIECE = 7


def pieces(turn: Turn, model: str) -> Iterator[Json]:
    """All of a turn, with its end."""
    yield piece(model, {"role": "assistant", "content": ""})
    for part in words(turn.text):
        yield piece(model, {"content": part})
    for index, use in enumerate(turn.uses):
        yield from asking(model, index, use)
    yield piece(model, {}, finish="tool_calls" if turn.uses else "stop")


def asking(model: str, index: int, use: Use) -> Iterator[Json]:
    """A tool call: its name first, its arguments in bits."""
    text = use.arguments if isinstance(use.arguments, str) else json.dumps(dict(use.arguments))
    begun = {"index": index, "id": f"call_{index}", "type": "function", "function": {"name": use.name, "arguments": ""}}
    yield piece(model, {"tool_calls": [begun]})
    for start in range(0, len(text), ARGUMENT_PIECE):
        more = {"index": index, "function": {"arguments": text[start : start + ARGUMENT_PIECE]}}
        yield piece(model, {"tool_calls": [more]})


def piece(model: str, delta: Json, *, finish: str | None = None) -> Json:
    """One of them."""
    choice: Json = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "chatcmpl-sandbox", "object": "chat.completion.chunk", "created": 0, "model": model, "choices": [choice]}


def words(text: str) -> list[str]:
    """The text in parts that end with a space."""
    return [part + " " for part in text.split(" ")[:-1]] + text.split(" ")[-1:] if text else []
