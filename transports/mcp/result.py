"""A Reply as a tool result: the same body as over HTTP, as text and as structured content."""

import re
from typing import TypeAlias, cast

import orjson

from registry.call import Reply
from registry.readable import HIDDEN, LONGEST, cleaned
from registry.schema import Answer

Result: TypeAlias = dict[str, object]
"""A tool result as it goes over the wire; what is None is left out there."""
SUSPECT = re.compile(rf"[{HIDDEN}\x7f]|\\u00[01]|\\[bf]")
LONG = re.compile(rf'\\|"[^"\\]{{{LONGEST + 1}}}')
"""Where a string may be too long: one that does not end soon, or an escape, behind which it may go on. It is looked for from quotes alone:
tried at every character of a long text it would take seconds.
"""


def tool_result(reply: Reply, answer: Answer) -> Result:
    """The result; a refusal is one with `isError`, so that the model can read it and mend the call."""
    failed = reply.status >= 400
    value = shown(reply, None if failed else answer.wrap)
    text = orjson.dumps(value).decode() if value is not None else ""
    content = [{"type": "text", "text": text}]
    if reply.next_cursor is not None:
        more = f'There is more: call again with the same arguments and starting_after="{reply.next_cursor}"'
        content.append({"type": "text", "text": f"{reply.note} {more}" if reply.note else more})
    return {"resultType": "complete", "content": content, "structuredContent": value, "isError": failed, "_meta": extra(reply)}


def shown(reply: Reply, wrap: str | None) -> object:
    """The decoded body, without characters that only a machine reads and without the rest of texts that have no end."""
    text = reply.body.decode()
    value = cast(object, orjson.loads(text)) if text else None
    if SUSPECT.search(text) or (len(text) > LONGEST and LONG.search(text)):
        value = cleaned(value)
    return value if wrap is None else {wrap: value}


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
