"""From the body of a request to the status and payload of its answer."""

from collections.abc import Mapping
from typing import NamedTuple, cast

import orjson

from clients.sandbox.ocs.entities import Refused, Token
from clients.sandbox.ocs.index import ANSWER_KEYS, STATISTICS, VERSION_1, VERSION_2, Method
from clients.sandbox.ocs.params import INVALID_REQUEST
from clients.sandbox.ocs.state import World
from clients.sandbox.ocs.wire import NOTHING, Broken, Members

UNKNOWN_REQUEST = 1


class Request(NamedTuple):
    """One method call."""

    method: str
    params: object


class Outcome(NamedTuple):
    """How a call ended; `payload` NOTHING leaves the answer key out, None writes null."""

    code: int
    message: str
    payload: object = NOTHING


def methods_at(path: str) -> Mapping[str, Method] | None:
    """What a base address serves. Any path that ends in a version does; `/as/v1` is the statistics server."""
    tail = path.rstrip("/")
    if tail.endswith("/as/v1"):
        return STATISTICS
    if tail.endswith("/v1"):
        return VERSION_1
    return VERSION_2 if tail.endswith("/v2") else None


def read_request(body: bytes) -> Request:
    """Exactly one top-level key, which is the method."""
    try:
        found: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Refused(INVALID_REQUEST, "the body is not JSON") from None
    if not isinstance(found, dict) or len(cast(Members, found)) != 1:
        raise Refused(INVALID_REQUEST, "the body must be an object with exactly one key, the method")
    ((method, params),) = cast(Members, found).items()
    return Request(method, params)


def perform(world: World, caller: Token, methods: Mapping[str, Method], request: Request) -> Outcome:
    """Call the method; a refusal has changed nothing."""
    method = methods.get(request.method)
    if method is None:
        return Outcome(UNKNOWN_REQUEST, "unknown request")
    try:
        return Outcome(0, "OK", method(world, caller, request.params))
    except Refused as refused:
        return failed(refused)


def failed(refused: Refused) -> Outcome:
    """A refusal as an outcome."""
    return Outcome(refused.code, refused.message, NOTHING if refused.payload is None else refused.payload)


def encode(method: str, outcome: Outcome) -> bytes:
    """The answer's bytes; those of a broken payload end in its middle."""
    broken = isinstance(outcome.payload, Broken)
    payload = outcome.payload.payload if isinstance(outcome.payload, Broken) else outcome.payload
    answer: Members = {"status": {"code": outcome.code, "msg": outcome.message}}
    if payload is not NOTHING:
        answer[ANSWER_KEYS.get(method, method)] = payload
    text = orjson.dumps(answer)
    return cut(text) if broken else text


def cut(text: bytes) -> bytes:
    """What arrives of JSON that was cut off."""
    return text[: len(text) * 2 // 3]
