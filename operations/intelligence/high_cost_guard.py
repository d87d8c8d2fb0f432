"""What a GET of the high-cost ranking is told."""

from pydantic import ConfigDict

from operations.deps import Ctx, Deps
from operations.intelligence.finding import Finding
from operations.intelligence.high_cost_subscribers import FleetCosts
from registry.call import Call
from registry.caller import Caller
from registry.errors import MethodNotAllowed
from registry.model import Input
from registry.operation import Example, operation


class AnyQuery(Input):
    """Whatever older clients sent, such as `threshold`; nothing of it is read."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"additionalProperties": True})


async def refuse_get(deps: Deps, call: Call, now: float) -> Caller:
    """Refuse whoever has a credential.

    Choice: api.md says "always 405", so it comes before everything that looks at tier, restrictions or query.
    """
    del deps, call, now
    raise use_post()


def use_post() -> MethodNotAllowed:
    """The refusal."""
    return MethodNotAllowed(
        "The ranking is asked for with POST, and there is no threshold",
        allow="POST",
        hint="POST /v1/intelligence/high-cost-subscribers with start, end and, if you like, limit in the JSON body",
    )


@operation(
    "GET",
    "/v1/intelligence/high-cost-subscribers",
    tool=False,
    charged=False,
    organisation=False,
    title="High-cost lines by GET",
    proof=refuse_get,
    raises=[MethodNotAllowed],
    examples=[Example("What an older client sends", {})],
)
async def high_cost_subscribers_method_guard(ctx: Ctx, params: AnyQuery) -> Finding[FleetCosts]:
    """Always answers 405: high_cost_subscribers is a POST.

    Nothing is read or charged, whatever the query says; a `threshold` is not accepted there either.
    """
    del ctx, params
    raise use_post()
