"""Where an answer goes on that has more."""

from typing import cast

import orjson

from registry.call import Reply

FIELD = "starting_after"


def next_cursor(reply: Reply) -> str | None:
    """Told beside the answer, or the last id of a list that says it has more."""
    if reply.next_cursor is not None or "json" not in reply.media_type:
        return reply.next_cursor
    try:
        answer = cast(object, orjson.loads(reply.body))
    except orjson.JSONDecodeError:
        return None
    page = cast("dict[str, object]", answer) if isinstance(answer, dict) else {}
    rows = page.get("data")
    last = cast("list[object]", rows)[-1] if isinstance(rows, list) and rows and page.get("has_more") is True else None
    id = cast("dict[str, object]", last).get("id") if isinstance(last, dict) else None
    return str(id) if isinstance(id, str | int) else None
