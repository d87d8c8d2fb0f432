"""Pages act through the pipeline: what a person may do with a page is what they may do with a call."""

from collections.abc import Mapping
from typing import NamedTuple, cast

import orjson

from operations.catalogue import CATALOGUE
from registry.answer import answer
from registry.call import Call
from registry.caller import ANONYMOUS, Caller
from transports.pages.problem import Problem, problem_of
from transports.pages.visit import Visit

Arguments = Mapping[str, object]


class Outcome(NamedTuple):
    """What came of a call."""

    body: Mapping[str, object]
    problem: Problem | None

    @property
    def rows(self) -> list[Mapping[str, object]]:
        """The entries of a list; none when it was refused."""
        return cast(list[Mapping[str, object]], self.body.get("data", [])) if self.problem is None else []


async def ask(
    visit: Visit, operation: str, arguments: Arguments, *, caller: Caller | None = None, confirm_token: str | None = None
) -> Outcome:
    """Call an operation for whoever sits before the browser; nobody for public ones."""
    call = Call(
        operation=CATALOGUE.operations[operation],
        surface="web",
        request_id=visit.request_id,
        caller=caller or visit.caller or ANONYMOUS,
        arguments=arguments,
        client=visit.client,
        confirm_token=confirm_token,
    )
    reply = await answer(visit.desk.pipeline, call, visit.desk.report)
    body = cast(Mapping[str, object], orjson.loads(reply.body))
    return Outcome(body, problem_of(reply.refusal) if reply.refusal is not None else None)


def given(form: Mapping[str, str], *names: str) -> dict[str, object]:
    """The fields that were filled in: an empty one of a form is one left out."""
    return {name: form[name] for name in names if form.get(name)}
