"""What the model is told of an operation's answer: data in a frame that says so, without secrets, and no more than it can hold."""

from typing import cast

import orjson

from registry.call import Reply
from registry.readable import readable
from registry.redaction import ADDRESSES, SECRETS, substituted

LONGEST = 20_000
"""Characters of one answer: some 5,000 tokens."""
LARGEST = 256 * 1024
"""Bytes of an answer that is looked at at all."""
# Bearer goods and codes of SIMs. Choice: the model is somebody else's computer, so they and e-mail addresses stay here, whoever asks.
SECRET_MEMBERS = frozenset(
    {"activationcode", "confirmationcode", "matchingid", "qrcode", "pin1", "pin2", "puk1", "puk2", "secret", "token"}
    | {"shareurl", "paymenturl", "pdfurl"}  # addresses that let in whoever has them
)
HIDDEN = "***"
Json = dict[str, object]


def told(operation: str, reply: Reply, room: int) -> str:
    """The answer, or what it was refused with, as one JSON object; `room` is how many characters are left for the whole chat."""
    frame: Json = {"operation": operation, "status": reply.status}
    if "json" not in reply.media_type or len(reply.body) > LARGEST:
        return mistake(operation, f"The answer has {len(reply.body)} bytes, too many to read; ask for fewer rows, fields or days")
    if reply.next_cursor is not None:
        frame["next"] = reply.next_cursor
    if reply.note is not None:
        frame["note"] = reply.note
    frame["untrusted_data"] = hidden(cast(object, orjson.loads(reply.body)))
    try:
        whole = orjson.dumps(frame).decode()
    except orjson.JSONEncodeError:  # as deep as JSON is written, and the frame is one level more
        return mistake(operation, "The answer is nested too deeply to be read here; ask for fewer fields")
    most = min(LONGEST, room)
    if len(whole) <= most:
        return whole
    return beginning(frame, most)


def beginning(frame: Json, most: int) -> str:
    """As much of it as there is room for, as a text, since half of it is no JSON. What is escaped in it takes more room."""
    text = orjson.dumps(frame.pop("untrusted_data")).decode()
    frame["cut"] = f"The answer has {len(text)} characters and only its beginning is here; ask for fewer rows, fields or days"
    kept = most
    while True:
        frame["untrusted_text"] = text[:kept]
        whole = orjson.dumps(frame).decode()
        if len(whole) <= most or kept == 0:
            return whole
        kept = max(0, kept - max(len(whole) - most, 100))


def mistake(operation: str, text: str) -> str:
    """A call that could not be made at all."""
    return orjson.dumps({"operation": operation, "status": 400, "error": text}).decode()


def hidden(value: object) -> object:
    """Everything inside a value without secrets and addresses, and without what only a machine reads."""
    if isinstance(value, str):
        return substituted(readable(value), (*SECRETS, *ADDRESSES))
    if isinstance(value, dict):
        return {readable(name): HIDDEN if is_secret(name, field) else hidden(field) for name, field in cast(Json, value).items()}
    return [hidden(each) for each in cast("list[object]", value)] if isinstance(value, list) else value


def is_secret(name: str, field: object) -> bool:
    """Whether a member holds one; one that is empty does not."""
    return field not in (None, "") and not isinstance(field, (dict, list)) and name.replace("_", "").lower() in SECRET_MEMBERS
