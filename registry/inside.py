"""Calls that are made inside the service, for a caller who is known: by a model that answers a chat, by a report that is due."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from registry.answer import Report, answer, gathered, refused
from registry.call import Call, Progress, Reply, Surface, no_progress
from registry.caller import Caller
from registry.catalogue import AnyOperation
from registry.errors import Restricted
from registry.model import Document
from registry.narrowing import shows
from registry.nulls import with_defaults
from registry.pipeline import Pipeline
from registry.schema import input_schema


class Tool(NamedTuple):
    """An operation as a model is told of it."""

    name: str
    description: str
    schema: Mapping[str, Any]


class Inside:
    """The pipeline, which is made after the dependencies that hold this. It decides what every other door has decided there."""

    def __init__(self) -> None:
        self._pipeline: Pipeline[Any] | None = None
        self._report: Report = unreported

    def open(self, pipeline: Pipeline[Any], report: Report) -> None:
        """From now on calls go through this pipeline; `report` is told of faults of ours."""
        self._pipeline, self._report = pipeline, report

    @property
    def pipeline(self) -> Pipeline[Any]:
        """The pipeline of this process."""
        if self._pipeline is None:
            raise RuntimeError("a call from inside before the pipeline was made")
        return self._pipeline

    async def call(
        self,
        operation: str,
        arguments: Mapping[str, Any],
        *,
        caller: Caller,
        surface: Surface,
        progress: Progress = no_progress,
        covered: bool = False,
    ) -> Reply:
        """One call of an operation that only reads; what it refuses is in the reply, as at any door. `covered`: it was paid for."""
        found = self.pipeline.catalogue.operations[operation]
        if not found.read_only:
            raise RuntimeError(f"{operation} changes something: no call from inside may")
        request, given = self.pipeline.ids.new("req_"), dict(arguments)
        if surface == "assistant":  # a model's context is small
            given = with_defaults(found.tool_defaults, given)
        call = Call(found, surface, request, caller=caller, arguments=given, progress=progress, covered=covered)
        return await gathered(await answer(self.pipeline, call, self._report), request)

    def tell(self, call: Call, error: BaseException) -> None:
        """A fault of ours that this call survived is told to the operator as any other."""
        self._report(call, error)

    def deny(self, operation: str, *, caller: Caller, surface: Surface) -> Reply:
        """Refuse a call that nobody may make from inside, as the pipeline would: the audit log has it."""
        call = Call(self.pipeline.catalogue.operations[operation], surface, self.pipeline.ids.new("req_"), caller=caller)
        call.identified, call.started = caller, self.pipeline.clock.monotonic()
        text = f"{operation} cannot be called by the assistant, which only reads; nothing was done"
        reply = refused(self.pipeline, call, Restricted(text, hint="Whoever asked may call it themselves"))
        self.pipeline.signals.answered(call, reply, 0.0)
        return reply

    def tools(self, caller: Caller) -> list[Tool]:
        """What this caller may read and a model can: the same tools that the MCP door lists for them, without those that write."""
        catalogue = self.pipeline.catalogue
        inside = catalogue.inside(caller.restrictions.toolsets or ())
        found = [each for each in catalogue.operations.values() if is_readable(each) and caller.has(each.scope)]
        return [tool_of(each) for each in found if shows(each, caller, inside)]


def is_readable(operation: AnyOperation) -> bool:
    """It changes nothing, and answers what a model can read."""
    return operation.tool and operation.read_only and operation.result is not Document


@lru_cache(maxsize=512)
def tool_of(operation: AnyOperation) -> Tool:
    """The definition: the summary and the paragraph for models."""
    paragraphs = [" ".join(part.split()) for part in operation.description.split("\n\n")]
    return Tool(operation.id, "\n".join(paragraphs[:2]), input_schema(operation, operation.tool_defaults))


def unreported(call: Call, error: BaseException) -> None:
    """A fault before anybody listens."""
    raise error
