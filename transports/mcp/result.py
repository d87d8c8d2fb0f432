"""A Reply as a tool result: the same body as over HTTP, as text, and that of a success as structured content too."""

import re
from collections.abc import Sequence
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
REPLAYED = "This is the stored answer of an earlier call with the same idempotency_key; nothing was done again."


def tool_result(reply: Reply, answer: Answer) -> Result:
    """The result. The first text is the body and nothing else; what a model has to know of it stands in a second one."""
    if reply.refusal is not None or reply.status >= 400:
        return refusal_result(shown(reply, None), remarks(reply), extra(reply))
    value = shown(reply, answer.wrap)
    body = orjson.dumps(value).decode() if value is not None else ""
    return {
        "resultType": "complete",
        "content": texts(body, *remarks(reply)),
        "structuredContent": value,
        "isError": False,
        "_meta": extra(reply),
    }


def refusal_result(body: object, more: Sequence[str] = (), meta: dict[str, object] | None = None) -> Result:
    """A refusal, so that the model can read it and correct the call.

    It has no structured content: several clients hold that against the output schema of the tool, also of an error, and throw.
    """
    return {"resultType": "complete", "content": texts(orjson.dumps(body).decode(), *more), "isError": True, "_meta": meta}


def texts(*parts: str) -> list[dict[str, str]]:
    """Texts as content."""
    return [{"type": "text", "text": part} for part in parts]


def remarks(reply: Reply) -> list[str]:
    """What stands behind the body, in one text: models do not see `_meta`."""
    parts = [REPLAYED] if is_replay(reply) else []
    if reply.next_cursor is not None:
        parts += [reply.note] if reply.note else []
        parts.append(f'There is more: call again with the same arguments and starting_after="{reply.next_cursor}"')
    return [" ".join(parts)] if parts else []


def is_replay(reply: Reply) -> bool:
    """Whether the answer was stored by an earlier call with the same key."""
    return "Idempotent-Replayed" in reply.headers


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
    if is_replay(reply):
        meta["replayed"] = True
    if "Retry-After" in reply.headers:
        meta["retryAfter"] = int(reply.headers["Retry-After"])
    return meta or None
