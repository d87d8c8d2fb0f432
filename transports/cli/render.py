"""An answer for people on a terminal, or for programs in a pipe; also one that is a stream of events."""

import sys
from collections.abc import Iterator
from typing import NamedTuple, cast

import orjson

from registry.call import Reply
from transports.cli.terminal import JsonObject, harmless_text, indented_json, print_line, text_for

EVENT_STREAM_TYPE = "text/event-stream"


class StreamEvent(NamedTuple):
    name: str
    data: JsonObject


def stream_events(body: bytes) -> Iterator[StreamEvent]:
    """Every event with JSON in it; comments only keep the connection alive."""
    for block in body.decode(errors="replace").split("\n\n"):
        parts = [line.partition(": ") for line in block.split("\n") if not line.startswith(":")]
        fields = {name: value for name, _, value in parts}
        if "data" in fields:
            yield StreamEvent(fields.get("event", "message"), cast(JsonObject, orjson.loads(fields["data"])))


def event_text(body: bytes) -> str:
    """The streamed text without control characters, and the quota that it used."""
    events = list(stream_events(body))
    text = "".join(str(event.data.get("text", "")) for event in events if event.name == "delta")
    clean = "".join(c if c.isprintable() or c == "\n" else "?" for c in text)
    used = [f"{event.data.get('used')} of {event.data.get('limit')} AI calls used today" for event in events if event.name == "quota"]
    return "\n\n".join([*([clean] if clean else []), *used])


def stream_failure(body: bytes) -> str | None:
    """Why the answer stopped early; None if it did not."""
    last = next((event.data for event in stream_events(body) if event.name == "error"), None)
    return None if last is None else f"{last.get('error')}  [{last.get('code')}]"


CURSOR_FIELD = "starting_after"


def next_cursor(reply: Reply) -> str | None:
    """The cursor of the answer's headers, else the last id of a list that says it has more; None at the end."""
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


NOT_DRAWABLE = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)


def print_reply(reply: Reply, *, as_json: bool) -> None:
    """Prints the answer: as JSON unless a person reads it."""
    person = sys.stdout.isatty() and not as_json
    if "json" in reply.media_type:
        sys.stdout.write((terminal_json(reply.body) if person else text_for(sys.stdout, plain_json(reply.body))) + "\n")
    elif reply.media_type.startswith(EVENT_STREAM_TYPE):
        print_line(
            (person and event_text(reply.body)) or "\n".join(orjson.dumps(event._asdict()).decode() for event in stream_events(reply.body))
        )
    elif sys.stdout.isatty():
        print_line(document_text(reply))
    else:
        sys.stdout.buffer.write(reply.body)
        sys.stdout.buffer.flush()


def document_text(reply: Reply) -> str:
    """A document on a terminal: text as text, anything else only named."""
    kind = reply.media_type.partition(";")[0]
    if kind.startswith("text/") or kind.endswith(("+xml", "/xml")):
        return reply.body.decode(errors="replace").rstrip("\n")
    return f"{len(reply.body)} bytes of {kind}, which a terminal does not show: send the output to a file, > FILE"


def terminal_json(body: bytes) -> str:
    """`body` for a person. JSON where it cannot be drawn, since the call was made and its answer may be the only one."""
    try:
        from transports.cli.drawing import draw_answer  # rich is imported for a person only

        return draw_answer(orjson.loads(body)).rstrip("\n")
    except NOT_DRAWABLE:
        return harmless_text(plain_json(body))


def plain_json(body: bytes) -> str:
    """`body` for a program, indented; as it is if it is nested too deeply or is no JSON."""
    try:
        return indented_json(orjson.loads(body))
    except NOT_DRAWABLE:
        return body.decode(errors="replace")


def explain_refusal(reply: Reply, command: str) -> str:
    """The refusal, and what to do next. `command`: what to type again."""
    body = refusal_body(reply)
    lines = [f"{body.get('error', body.get('message', ''))}  [{body.get('code', reply.status)}]"]
    if body.get("hint") and reply.status != 202:  # a header's name is of no use here, and the command is told below
        lines.append(f"  {body['hint']}")
    following = {
        401: "Here the credential is given with --key or RESELLER_API_KEY\n  or once and for all: `reseller login --url URL`",
        402: f"Upgrade: {body.get('upgrade_url')}",
        409: f"Connect: {body.get('connect_url')}" if body.get("connect_url") else "",
        429: f"Starts again at {body.get('reset_at')}; a larger tier: {body.get('upgrade_url')}",
        202: next_step_of_waiting(body, command),
    }.get(reply.status, "")
    lines += [f"  {following}"] if following else []
    lines += [f"  request id {body['request_id']}"] if body.get("request_id") else []
    return "\n".join(lines)


KEYED_COMMANDS = ("reseller call ", "reseller plan apply ")
"""How commands begin that take --idempotency-key."""


def next_step_of_waiting(body: JsonObject, command: str) -> str:
    """How a call goes on that was not made yet: it is confirmed here, or approved by a person elsewhere."""
    approval = body.get("approval")
    if not isinstance(approval, dict):
        return f"To do it: {command}" if command.endswith(" --yes") else f"To do it: {command} --confirm-token {body.get('confirm_token')}"
    asked = cast(JsonObject, approval)
    key = str(asked["idempotency_key"])
    if not command.startswith(KEYED_COMMANDS):
        again = f"the same call ({body.get('route')}) with the header Idempotency-Key: {key}"
    else:
        again = command if key in command else f"{command} --idempotency-key {key}"
    return f"Have it approved at {asked['page']}; then this gets the result: {again}"


def reply_header(reply: Reply, name: str) -> str | None:
    return next((value for each, value in reply.headers.items() if each.lower() == name), None)


def refusal_body(reply: Reply) -> JsonObject:
    """The body of a refusal; a proxy's answer has only its status."""
    try:
        body = cast(object, orjson.loads(reply.body)) if "json" in reply.media_type else None
    except orjson.JSONDecodeError:
        body = None
    return cast(JsonObject, body) if isinstance(body, dict) else {"error": f"HTTP {reply.status}"}
