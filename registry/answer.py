"""The pipeline's caller: every door asks here, so that every failure of every call becomes a body in one place."""

from asyncio import CancelledError, timeout
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import orjson

from registry.call import Call, Reply
from registry.errors import BadRequest, Internal, OcsError, Refusal, Unauthorized
from registry.model import Events
from registry.pipeline import Pipeline, line

GATHERED = 8 << 20
GATHERED_SECONDS = 60.0
EVENTS_SECONDS = 330.0
"""Events are made while they are read, and whoever makes them ends them."""

Report = Callable[[Call, BaseException], None]


async def answer(pipeline: Pipeline[Any], call: Call, report: Report) -> Reply:
    """Run the call and render whatever came of it; `report` is told about faults of ours."""
    monotonic = pipeline.clock.monotonic
    began = monotonic()
    try:
        reply = await pipeline.run(call)
    except Refusal as refusal:
        reply = refused(pipeline, call, refusal)
    except CancelledError:
        pipeline.signals.abandoned(call, monotonic() - began)
        raise
    except Exception as error:  # the one place where a fault of ours becomes a 500
        report(call, error)
        reply = refused(pipeline, call, Internal("Internal error; quote the request id when you report it"))
    pipeline.signals.answered(call, reply, monotonic() - began)
    usage = call.usage
    if usage is not None:
        left = max(0, usage.limit - usage.used)
        seconds = max(0, int(usage.reset - pipeline.clock.now()))
        reply.headers["RateLimit-Policy"] = f'"tier";q={usage.limit};w=86400'
        reply.headers["RateLimit"] = f'"tier";r={left};t={seconds}'
    return reply


def refused(pipeline: Pipeline[Any], call: Call, refusal: Refusal) -> Reply:
    """The refusal's body and headers, and its audit row. A 401 has no principal to record: it is only logged."""
    caller = call.identified
    if caller is not None and caller.kind != "public" and not call.recorded and not isinstance(refusal, Unauthorized):
        clock = pipeline.clock
        pipeline.journal.record(line(call, caller, refusal.error_code, refusal.status, clock.now(), clock.monotonic()))
    return told(refusal, call.request_id)


def told(refusal: Refusal, request_id: str) -> Reply:
    """Without the frames that it came through: they hold the reply, so that both would wait for the collector, and hold what was sent."""
    refusal.__traceback__ = refusal.__cause__ = refusal.__context__ = None
    return Reply(refusal.status, orjson.dumps(refusal.body(request_id)), headers=dict(refusal.headers), refusal=refusal)


async def gathered(reply: Reply, request_id: str) -> Reply:
    """The reply with its whole body, for doors that hand on no pieces."""
    if reply.passed is None:
        return reply
    body = bytearray()
    seconds = EVENTS_SECONDS if isinstance(reply.passed, Events) else GATHERED_SECONDS
    try:
        async with timeout(seconds), aclosing(reply.passed.pieces) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > GATHERED:
                    raise BadRequest(
                        f"The answer has more than {GATHERED >> 20} MiB, more than this door hands on",
                        hint="Narrow it with the operation's filters, or read it over HTTP",
                    )
    except (Refusal, TimeoutError) as error:
        refusal = error if isinstance(error, Refusal) else OcsError("The provider's answer did not come to its end in time; call again")
        return told(refusal, request_id)
    return Reply(reply.status, bytes(body), reply.media_type, headers=reply.headers, next_cursor=reply.next_cursor, note=reply.note)
