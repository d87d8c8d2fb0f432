"""The pipeline's callers: `answer_call` for every door, so that every failure of every call becomes a body in one place; and
`InternalCalls`, for calls made inside the service for a caller who is known: by a model that answers a chat, by a report that is due."""

from asyncio import CancelledError, timeout
from collections.abc import Callable, Mapping
from contextlib import aclosing
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import orjson

from registry.approvals import ApprovalTerms, TermsFound
from registry.binding import with_defaults
from registry.call import Call, CallState, Mandate, Progress, Reply, Surface, no_progress
from registry.caller import Caller
from registry.catalogue import AnyOperation
from registry.errors import BadRequest, Internal, OcsError, Refusal, Restricted, Unauthorized
from registry.operation import Document, EventStream
from registry.pipeline import Pipeline, audit_record
from registry.restrictions import is_shown_to
from registry.schema import input_schema

REPLY_BYTES_LIMIT = 8 << 20
REPLY_SECONDS = 60.0
EVENT_STREAM_SECONDS = 330.0
"""Events are made while they are read, and whoever makes them ends them."""

FaultReport = Callable[[Call, BaseException], None]


async def answer_call(pipeline: Pipeline[Any], call: Call, report: FaultReport) -> Reply:
    """Runs `call` and renders its answer or its refusal. `report` is called with faults of ours, which become a 500."""
    monotonic = pipeline.clock.monotonic
    began = monotonic()
    try:
        reply = await pipeline.run(call)
    except Refusal as refusal:
        reply = record_refusal(pipeline, call, refusal)
    except CancelledError:
        pipeline.signals.abandoned(call, monotonic() - began)
        raise
    except Exception as error:  # the one place where a fault of ours becomes a 500
        report(call, error)
        reply = record_refusal(pipeline, call, Internal())
    pipeline.signals.answered(call, reply, monotonic() - began)
    usage = call.usage
    if usage is not None:
        left = max(0, usage.limit - usage.used)
        seconds = max(0, int(usage.reset - pipeline.clock.now()))
        reply.headers["RateLimit-Policy"] = f'"tier";q={usage.limit};w=86400'
        reply.headers["RateLimit"] = f'"tier";r={left};t={seconds}'
    return reply


def record_refusal(pipeline: Pipeline[Any], call: Call, refusal: Refusal) -> Reply:
    """The refusal's body and headers, and its audit row. A 401 has no principal to record: it is only logged."""
    caller = call.identified
    recorded = call.draws_page or call.state is CallState.RECORDED or isinstance(refusal, Unauthorized)
    if caller is not None and caller.kind != "public" and not recorded:
        clock = pipeline.clock
        pipeline.journal.record(audit_record(call, caller, refusal.error_code, refusal.status, clock.now(), clock.monotonic()))
    return refusal_reply(refusal, call.request_id)


def refusal_reply(refusal: Refusal, request_id: str) -> Reply:
    """The body and headers of `refusal`.

    Drops the traceback of `refusal`: it references the reply, and the cycle would keep both until the next collection.
    """
    refusal.__traceback__ = refusal.__cause__ = refusal.__context__ = None
    return Reply(refusal.status, orjson.dumps(refusal.body(request_id)), headers=dict(refusal.headers), refusal=refusal)


async def gather_reply(reply: Reply, request_id: str) -> Reply:
    """`reply` with its whole body, for doors that do not stream. Waits for the stream: 60 seconds at most, 330 for events."""
    if reply.stream is None:
        return reply
    body = bytearray()
    seconds = EVENT_STREAM_SECONDS if isinstance(reply.stream, EventStream) else REPLY_SECONDS
    try:
        async with timeout(seconds), aclosing(reply.stream.pieces) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > REPLY_BYTES_LIMIT:
                    raise BadRequest(
                        f"The answer has more than {REPLY_BYTES_LIMIT >> 20} MiB, more than this door hands on",
                        hint="Narrow it with the operation's filters, or read it over HTTP",
                    )
    except (Refusal, TimeoutError) as error:
        refusal = error if isinstance(error, Refusal) else OcsError("The provider's answer did not come to its end in time; call again")
        return refusal_reply(refusal, request_id)
    return replace(reply, body=bytes(body), stream=None, encoded_here=False)


class ModelTool(NamedTuple):
    """An operation as a tool of a language model."""

    name: str
    description: str
    schema: Mapping[str, Any]


class InternalCalls:
    """A door inside the process. `open` gives it the pipeline, which is made after the dependencies that hold this object."""

    def __init__(self) -> None:
        self._pipeline: Pipeline[Any] | None = None
        self._report: FaultReport = raise_unreported

    def open(self, pipeline: Pipeline[Any], report: FaultReport) -> None:
        """Sets the pipeline that calls go through from now on. `report` is called with faults of ours."""
        self._pipeline, self._report = pipeline, report

    @property
    def pipeline(self) -> Pipeline[Any]:
        if self._pipeline is None:
            raise RuntimeError("a call from inside before the pipeline was made")
        return self._pipeline

    def operations_in(self, toolsets: tuple[str, ...]) -> frozenset[str]:
        """Every operation of some toolsets and presets."""
        return self.pipeline.catalogue.operations_in(toolsets)

    async def call(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        *,
        caller: Caller,
        surface: Surface,
        progress: Progress = no_progress,
        prepaid_by_parent: bool = False,
    ) -> Reply:
        """Calls an operation that only reads. A refusal is in the reply and is not raised. Waits as the operation does.

        `prepaid_by_parent`: another call, which was charged, makes this one.
        """
        found = self.pipeline.catalogue.operations[operation]
        if not found.read_only:
            raise RuntimeError(f"{operation} changes something: no call from inside may")
        request, given = self.pipeline.ids.new("req_"), dict(arguments)
        if surface == "assistant":  # a model's context is small
            given = with_defaults(found.tool_defaults, given)
        call = Call(found, surface, request, caller=caller, arguments=given, progress=progress, prepaid_by_parent=prepaid_by_parent)
        return await gather_reply(await answer_call(self.pipeline, call, self._report), request)

    async def write(self, operation: str, arguments: Mapping[str, Any], *, caller: Caller, idempotency_key: str, mandate: Mandate) -> Reply:
        """Calls an operation for `caller`, under `mandate`; a second call with the same key gets the answer of the first.

        A refusal is in the reply and is not raised. Waits as the operation does.
        """
        pipeline = self.pipeline
        call = Call(
            pipeline.catalogue.operations[operation],
            "change",
            pipeline.ids.new("req_"),
            caller=caller,
            arguments=dict(arguments),
            idempotency_key=idempotency_key,
            mandate=mandate,
        )
        return await gather_reply(await answer_call(pipeline, call, self._report), call.request_id)

    async def inquire(self, operation: str, arguments: Mapping[str, Any], *, caller: Caller, idempotency_key: str) -> ApprovalTerms | None:
        """What a person would approve of this call of `caller`; nothing is done. None: the key has an answer already.

        Raises the Refusal that the call would get. Waits as its access step does.
        """
        pipeline = self.pipeline
        found, request = pipeline.catalogue.operations[operation], pipeline.ids.new("req_")
        call = Call(found, "change", request, caller=caller, arguments=dict(arguments), idempotency_key=idempotency_key, inquiry=True)
        try:
            await pipeline.run(call)
        except TermsFound as end:
            return end.terms
        return None

    def tell(self, call: Call, error: BaseException) -> None:
        """Reports a fault of ours that `call` survived to the operator."""
        self._report(call, error)

    def deny(self, operation: str, *, caller: Caller, surface: Surface) -> Reply:
        """Refuses a call that nobody may make from inside, and records the refusal in the audit log, as the pipeline would."""
        call = Call(self.pipeline.catalogue.operations[operation], surface, self.pipeline.ids.new("req_"), caller=caller)
        call.identified, call.started = caller, self.pipeline.clock.monotonic()
        text = f"{operation} cannot be called by the assistant, which only reads; nothing was done"
        reply = record_refusal(self.pipeline, call, Restricted(text, hint="Whoever asked may call it themselves"))
        self.pipeline.signals.answered(call, reply, 0.0)
        return reply

    def tools(self, caller: Caller) -> list[ModelTool]:
        """The tools that the MCP door lists for `caller`, without those that write."""
        catalogue = self.pipeline.catalogue
        inside = catalogue.operations_in(caller.restrictions.toolsets or ())
        found = [
            each
            for each in catalogue.operations.values()
            if (each.tool and each.read_only and each.result is not Document) and caller.has(each.scope)
        ]
        return [model_tool(each) for each in found if is_shown_to(each, caller, inside)]


@lru_cache(maxsize=512)
def model_tool(operation: AnyOperation) -> ModelTool:
    """The definition: the summary and the paragraph for models."""
    paragraphs = [" ".join(part.split()) for part in operation.description.split("\n\n")]
    return ModelTool(operation.id, "\n".join(paragraphs[:2]), input_schema(operation, operation.tool_defaults))


def raise_unreported(call: Call, error: BaseException) -> None:
    """A fault before anybody listens."""
    raise error
