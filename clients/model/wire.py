"""Our words as the chat-completions wire has them."""

from collections.abc import Sequence

from clients.model.port import Message, ToolSpec

Json = dict[str, object]


def said(message: Message) -> Json:
    """One turn."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.call_id, "content": message.content}
    if not message.calls:
        return {"role": message.role, "content": message.content}
    calls = [{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in message.calls]
    return {"role": "assistant", "content": message.content or None, "tool_calls": calls}


def body(messages: Sequence[Message], tools: Sequence[ToolSpec], model: str) -> Json:
    """What is asked for. Nothing that only some endpoints know: no limit of tokens, no usage."""
    asked: Json = {"model": model, "messages": [said(message) for message in messages], "stream": True}
    if tools:
        asked["tools"] = [
            {"type": "function", "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}}
            for tool in tools
        ]
    return asked
