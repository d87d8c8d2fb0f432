"""gzip for clients that take it, where an answer is long enough and holds no secret beside what somebody else may have chosen.

Whoever sees the length of a compressed answer, and chooses a part of it, can guess what stands beside that part (BREACH). So answers to
changes, which hold new secrets, lists with activation codes, orders and the pages of people and shops are sent as they are.
"""

import re
import zlib
from functools import cache

import orjson
from anyio import to_thread

from registry.catalogue import AnyOperation
from registry.operation import Document
from registry.schema import output_schema
from transports.http.asgi import Headers
from transports.http.response import BodyEncoder

SMALLEST_COMPRESSED = 1024
"""Bytes of a body below which the headers weigh more than what is saved."""
LARGEST_IN_LOOP = 64 * 1024
"""Bytes that take half a millisecond; more is compressed beside the event loop."""
GZIP_LEVEL = 1
"""The fastest: JSON becomes a sixth of its size, and the best level saves another tenth in three times the time."""
GZIP_WINDOW = 31
"""zlib's largest window, with the head and end of gzip around."""
GZIP_HEADER = (b"content-encoding", b"gzip")
VARY_HEADER, ACCEPT_ENCODING = b"vary", b"Accept-Encoding"
COMPRESSIBLE = ("application/json", "text/")
"""No picture: those of operations are QR codes, which hold activation codes."""
EVENT_STREAM = "text/event-stream"
CODING_WEIGHT = re.compile(rb"1(?:\.0{0,3})?|0\.(?=0{0,2}[1-9])[0-9]{1,3}")
OBJECT_MEMBER = re.compile(r'"(\w+)":\{')
SECRET_MEMBERS = frozenset(
    {"activationcode", "confirmationcode", "matchingid", "qrcode", "pin1", "pin2", "puk1", "puk2", "secret", "token", "shareurl"}
)
"""Members of an answer that are worth guessing, without underscores and in lower case."""


@cache
def may_be_compressed(operation: AnyOperation) -> bool:
    """Whether no answer of an operation holds a secret: it only reads, nobody gets in by guessing, and its schema names none."""
    if not operation.read_only or operation.enumeration_guarded or not (operation.public or operation.organisation):
        return False
    if operation.result is Document:
        return True
    names = OBJECT_MEMBER.findall(orjson.dumps(output_schema(operation.result).schema).decode())
    return SECRET_MEMBERS.isdisjoint(name.replace("_", "").lower() for name in names)


def is_compressible(media_type: str) -> bool:
    """Whether a type of content becomes smaller at all. An event stream is sent as it is: each event has to arrive when it is made."""
    return media_type.startswith(COMPRESSIBLE) and not media_type.startswith(EVENT_STREAM)


def takes_gzip(headers: Headers) -> bool:
    """Whether Accept-Encoding allows it (RFC 9110 12.5.3): named with a weight above 0, or under `*` and not named."""
    weights = dict[bytes, bool]()
    for name, value in headers:
        if name == b"accept-encoding":
            for part in value.lower().split(b","):
                coding, _, parameter = part.partition(b";")
                weights[coding.strip()] = has_weight(parameter.strip())
    return weights.get(b"gzip", weights.get(b"x-gzip", weights.get(b"*", False)))


def has_weight(parameter: bytes) -> bool:
    """Whether a weight, `q=0.5`, is above 0; none is 1, and one that cannot be read is 0."""
    name, _, weight = parameter.partition(b"=")
    return not parameter or (name.strip() == b"q" and CODING_WEIGHT.fullmatch(weight.strip()) is not None)


def gzip_encoder() -> BodyEncoder:
    return zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, GZIP_WINDOW)


def gzip_body(body: bytes) -> bytes:
    making = gzip_encoder()
    return making.compress(body) + making.flush()


async def gzip_in_thread(body: bytes) -> bytes:
    """A whole body; a long one in a thread, where zlib keeps nobody waiting."""
    return gzip_body(body) if len(body) <= LARGEST_IN_LOOP else await to_thread.run_sync(gzip_body, body)


def vary_by_coding(headers: Headers) -> None:
    """Say that the answer depends on what the client takes."""
    for place, (name, value) in enumerate(headers):
        if name == VARY_HEADER:
            headers[place] = (VARY_HEADER, value + b", " + ACCEPT_ENCODING)
            return
    headers.append((VARY_HEADER, ACCEPT_ENCODING))


def set_coded_length(headers: Headers, length: int) -> None:
    headers[:] = [(name, b"%d" % length if name == b"content-length" else value) for name, value in headers]
    headers.append(GZIP_HEADER)
