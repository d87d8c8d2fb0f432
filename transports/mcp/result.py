"""A Reply as a tool result: the same body as over HTTP, as text and as structured content."""

import re
from typing import cast

import orjson
from mcp_types import CallToolResult, ContentBlock, TextContent

from registry.call import Reply
from registry.schema import Answer

# What a person does not see and a model may obey: C0 and C1 controls but for tab and line ends, zero-width and bidi marks.
HIDDEN = "\u0080-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\U000e0000-\U000e01ef"
SUSPECT = re.compile(rf"[{HIDDEN}\x7f]|\\u00[01]|\\[bf]")
STRIPPED = re.compile(rf"[{HIDDEN}\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
LONGEST = 2000
"""Characters of one string: a longer one is a way to drown a model's other words, not a name or a note to act on."""
LONG = re.compile(rf'\\|[^"\\]{{{LONGEST + 1}}}')
"""Where a string may be too long: a run without quotes, or an escape, behind which a string may go on."""


def tool_result(reply: Reply, answer: Answer) -> CallToolResult:
    """The result; a refusal is one with `is_error`, so that the model can read it and mend the call."""
    failed = reply.status >= 400
    value = shown(reply, None if failed else answer.wrap)
    text = orjson.dumps(value).decode() if value is not None else ""
    content = [TextContent(type="text", text=text)]
    if reply.next_cursor is not None:
        more = f'There is more: call again with the same arguments and starting_after="{reply.next_cursor}"'
        content.append(TextContent(type="text", text=f"{reply.note} {more}" if reply.note else more))
    return CallToolResult(
        content=cast("list[ContentBlock]", content),
        structured_content=value,
        is_error=failed,
        _meta=extra(reply),
    )


def shown(reply: Reply, wrap: str | None) -> object:
    """The decoded body, without characters that only a machine reads and without the rest of texts that have no end."""
    text = reply.body.decode()
    value = cast(object, orjson.loads(text)) if text else None
    if SUSPECT.search(text) or (len(text) > LONGEST and LONG.search(text)):
        value = cleaned(value)
    return value if wrap is None else {wrap: value}


def cleaned(value: object) -> object:
    """The value with clean strings; upstream and customers' texts are for people, never instructions."""
    if isinstance(value, str):
        return readable(value)
    if isinstance(value, dict):
        return {readable(name): cleaned(part) for name, part in cast(dict[str, object], value).items()}
    if isinstance(value, list):
        return [cleaned(part) for part in cast(list[object], value)]
    return value


def readable(text: str) -> str:
    """What a person would see of it. A text that is cut says so, so that nobody writes back half of it."""
    text = STRIPPED.sub("", text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… [{LONGEST} of {len(text)} characters; HTTP answers all]"


def extra(reply: Reply) -> dict[str, object] | None:
    """What HTTP says in headers and a program needs: where the list goes on, that the answer is a replay, when to come again."""
    meta: dict[str, object] = {}
    if reply.next_cursor is not None:
        meta["next"] = reply.next_cursor
    if "Idempotent-Replayed" in reply.headers:
        meta["replayed"] = True
    if "Retry-After" in reply.headers:
        meta["retryAfter"] = int(reply.headers["Retry-After"])
    return meta or None
