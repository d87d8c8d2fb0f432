"""The answer side of an operation: its success, its confirm challenge, and every refusal by status."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Annotated, get_args, get_origin

from registry.catalogue import AnyOperation
from registry.errors import (
    ConfirmTokenRequired,
    Conflict,
    OcsError,
    OcsUnavailable,
    ProviderError,
    QuotaExceeded,
    Refusal,
    StoreUnavailable,
    Unauthorized,
)
from registry.model import Document
from transports.openapi.components import Components
from transports.openapi.refusals import Fault, first_line
from transports.openapi.samples import challenge, sample
from transports.openapi.schemas import Json, clean_name

HEADERS: dict[str, tuple[str, Json]] = {
    "Request-Id": ("Names this call in logs and error bodies; quote it when you report a problem.", {"type": "string"}),
    "RateLimit": ("What is left of the daily quota: `r` calls, for `t` seconds.", {"type": "string"}),
    "RateLimit-Policy": ("The daily quota of your tier: `q` calls in `w` seconds.", {"type": "string"}),
    "Idempotent-Replayed": ("`true`: the stored answer of an earlier call with the same key.", {"type": "string", "enum": ["true"]}),
    "Retry-After": ("Seconds to wait before the call is repeated.", {"type": "integer", "minimum": 1}),
    "WWW-Authenticate": ("How to authenticate (RFC 6750).", {"type": "string"}),
}
FAULT_HEADERS: dict[type[Refusal], tuple[str, ...]] = {
    Unauthorized: ("WWW-Authenticate",),
    Conflict: ("Retry-After",),  # idempotency_in_progress
    QuotaExceeded: ("Retry-After", "RateLimit", "RateLimit-Policy"),
    StoreUnavailable: ("Retry-After",),
    OcsUnavailable: ("Retry-After",),
}


def headers(components: Components, names: Iterable[str]) -> Json:
    """References to response headers; Request-Id is on every answer."""
    return {
        name: components.put("headers", name, {"description": HEADERS[name][0], "schema": HEADERS[name][1]})
        for name in ("Request-Id", *names)
    }


def is_document(operation: AnyOperation) -> bool:
    """The answer is not JSON."""
    result: object = operation.result
    return result is Document or (get_origin(result) is Annotated and get_args(result)[0] is Document)


def media_types(operation: AnyOperation) -> tuple[str, ...]:
    """The media types of a document, as `Annotated[Document, "image/png", ...]` lists them."""
    listed = tuple(word for word in get_args(operation.result)[1:] if isinstance(word, str))
    return listed or ("application/octet-stream",)


def success(operation: AnyOperation, schema: Json | None, components: Components) -> Json:
    """What a call that worked is answered with."""
    names = ["RateLimit", "RateLimit-Policy"] if operation.charged else []
    names += [] if operation.once is None else ["Idempotent-Replayed"]
    made: Json = {"description": describe(operation, schema, components), "headers": headers(components, names)}
    if schema is None:
        made["content"] = {name: {"schema": {"type": "string", "format": "binary"}} for name in media_types(operation)}
        return made
    content: Json = {"schema": schema}
    examples = {
        f"example{number}": {"summary": example.title, "value": example.answer}
        for number, example in enumerate(operation.examples, 1)
        if example.answer is not None
    }
    if examples:
        content["examples"] = examples
    made["content"] = {"application/json": content} | {name: {"schema": {"type": "string"}} for name in operation.forms}
    return made


def describe(operation: AnyOperation, schema: Json | None, components: Components) -> str:
    """The answer in one sentence."""
    if schema is None:
        return "The document."
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    found: str = components.schemas.get(name, schema).get("description", "")
    return found.partition("\n")[0] or operation.summary


def by_status(faults: Iterable[Fault]) -> Iterator[tuple[int, list[Fault]]]:
    """Faults that share a status, which one response describes."""
    for status, group in groupby(sorted(faults, key=lambda told: told.status), key=lambda told: told.status):
        yield status, list(group)


def response_name(told: list[Fault]) -> str:
    """BadRequest, ConflictOrOrgNotConnected: the classes that a response stands for, narrower ones under the class they narrow."""
    return "Or".join(sorted({family(one.refusal).__name__ for one in told}))


def family(refusal: type[Refusal]) -> type[Refusal]:
    """The class of registry.errors that a refusal is, or narrows."""
    return next(found for found in refusal.__mro__ if {Refusal, ProviderError, OcsError} & set(found.__bases__))


def example_name(one: Fault) -> str:
    """Its code; what the charging system refuses has the codes of our own refusals, and examples of its own."""
    return f"ocs_{one.code}" if issubclass(one.refusal, OcsError) and one.refusal is not OcsError else one.code


class Refusals:
    """Every refusal response, written once for all operations with every code it is given with."""

    def __init__(self, operations: Iterable[list[Fault]], components: Components, base_url: str) -> None:
        self._components, self._base_url = components, base_url
        self._known: dict[str, list[Fault]] = {}
        for faults in operations:
            for _, told in by_status(faults):
                known = self._known.setdefault(response_name(told), [])
                known += [one for one in told if one not in known]

    def of(self, faults: list[Fault]) -> Json:
        """The refusals of one operation by status; the reference's own description names the codes of this operation."""
        found: Json = {}
        for status, told in by_status(faults):
            name = response_name(told)
            found[str(status)] = self._components.put("responses", name, self._response(self._known[name])) | {
                "description": " ".join(f"`{one.code}`: {one.when}" for one in told)
            }
        return found

    def _response(self, told: list[Fault]) -> Json:
        bodies = dict.fromkeys(clean_name(one.refusal.body_type.__name__) for one in told)
        known = [{"$ref": f"#/components/schemas/{name}"} for name in bodies]
        names = dict.fromkeys(name for one in told for name in FAULT_HEADERS.get(family(one.refusal), ()))
        content: Json = {
            "schema": known[0] if len(known) == 1 else {"anyOf": known},
            "examples": {example_name(one): {"value": sample(one, self._base_url)} for one in told},
        }
        return {
            "description": " ".join(dict.fromkeys(first_line(family(one.refusal)) for one in told)),
            "headers": headers(self._components, names),
            "content": {"application/json": content},
        }


def confirm_challenge(operation: AnyOperation, components: Components) -> Json:
    """The 202 of a confirm operation that came without its token."""
    name = clean_name(ConfirmTokenRequired.body_type.__name__)
    return {
        "description": first_line(ConfirmTokenRequired) + " Repeat the call with the header X-Confirm-Token.",
        "headers": headers(components, ()),
        "content": {
            "application/json": {
                "schema": {"$ref": f"#/components/schemas/{name}"},
                "example": challenge(operation.method, operation.path),
            }
        },
    }
