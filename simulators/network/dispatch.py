"""Dispatch: every method of the wire, who calls it, and how a request's body becomes an answer's status and payload."""

from collections.abc import Mapping
from typing import NamedTuple, cast
from urllib.parse import parse_qs

import orjson

from simulators.network.entities import ADDRESS_NOT_ALLOWED, INVALID_REQUEST, NO_API_ACCOUNT, UNKNOWN_REQUEST, NetworkRefusal, NetworkToken
from simulators.network.methods import packages, radio, resellers, statistics, subscribers, tariffs, templates, zones
from simulators.network.wire import NULL_PAYLOAD, NetworkMethod, TruncatedPayload, WireMembers, drop_empty
from simulators.network.world import World

METHOD_FILES = (packages, radio, resellers, statistics, subscribers, tariffs, templates, zones)
METHODS = [method for file in METHOD_FILES for method in vars(file).values() if isinstance(method, NetworkMethod)]
"""What the files of the nouns declare."""
VERSION_1_METHODS = {method.name: method for method in METHODS if method.version == "v1"}
VERSION_2_METHODS = {method.name: method for method in METHODS if method.version == "v2"}
STATISTICS_METHODS = {method.name: method for method in METHODS if method.statistics}
ANSWER_KEYS = {method.name: method.key for method in METHODS}
TOKEN_SCHEMES = ("bearer", "token")


class MethodCall(NamedTuple):
    method: str
    params: object


class CallOutcome(NamedTuple):
    """How a call ended. An answer without a `payload` lacks its key; NULL_PAYLOAD writes null."""

    code: int
    message: str
    payload: object = None


def methods_at_path(path: str) -> Mapping[str, NetworkMethod] | None:
    """What a base address serves. Any path that ends in a version does; `/as/v1` is the statistics server."""
    tail = path.rstrip("/")
    if tail.endswith("/as/v1"):
        return STATISTICS_METHODS
    if tail.endswith("/v1"):
        return VERSION_1_METHODS
    return VERSION_2_METHODS if tail.endswith("/v2") else None


def read_method_call(body: bytes) -> MethodCall:
    """The method and its parameters: the body has exactly one key, the method."""
    try:
        found: object = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise NetworkRefusal(INVALID_REQUEST, "the body is not JSON") from None
    if not isinstance(found, dict) or len(cast(WireMembers, found)) != 1:
        raise NetworkRefusal(INVALID_REQUEST, "the body must be an object with exactly one key, the method")
    ((method, params),) = cast(WireMembers, found).items()
    return MethodCall(method, params)


def perform_method(world: World, caller: NetworkToken, methods: Mapping[str, NetworkMethod], request: MethodCall) -> CallOutcome:
    """Calls the method. A refusal is an outcome, and has changed nothing."""
    method = methods.get(request.method)
    if method is None:
        return CallOutcome(UNKNOWN_REQUEST, "unknown request")
    try:
        return CallOutcome(0, "OK", drop_empty(method.perform(world, caller, request.params)))
    except NetworkRefusal as refused:
        return refused_outcome(refused)


def refused_outcome(refused: NetworkRefusal) -> CallOutcome:
    return CallOutcome(refused.code, refused.message, refused.payload)


def encode_answer(method: str, outcome: CallOutcome) -> bytes:
    """The answer's bytes; those of a broken payload end in its middle."""
    broken = isinstance(outcome.payload, TruncatedPayload)
    payload = outcome.payload.payload if isinstance(outcome.payload, TruncatedPayload) else outcome.payload
    answer: WireMembers = {"status": {"code": outcome.code, "msg": outcome.message}}
    if payload is not None:
        answer[ANSWER_KEYS.get(method, method)] = None if payload is NULL_PAYLOAD else payload
    text = orjson.dumps(answer)
    return truncate_json(text) if broken else text


def truncate_json(text: bytes) -> bytes:
    return text[: len(text) * 2 // 3]


def authenticate_caller(world: World, query: str, headers: Mapping[str, str], client: str) -> NetworkToken:
    """The token's record; the query wins over the header."""
    token = world.tokens.get(request_token(query, headers))
    if token is None:
        raise NetworkRefusal(NO_API_ACCOUNT, "no API account for this token")
    if token.addresses and client not in token.addresses:
        raise NetworkRefusal(ADDRESS_NOT_ALLOWED, "source address not authorised")
    return token


def request_token(query: str, headers: Mapping[str, str]) -> str:
    """The token of the query, else of the header; empty where there is none."""
    found = parse_qs(query).get("token")
    if found:
        return found[0]
    scheme, _, value = headers.get("authorization", "").partition(" ")
    return value.strip() if scheme.lower() in TOKEN_SCHEMES else ""
