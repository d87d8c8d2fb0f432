"""The composites that a schedule may run, and their input: checked when the schedule is made, completed when it runs."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Literal

import orjson
from pydantic import JsonValue, WithJsonSchema

from operations.times import utc_today
from registry.answer import InternalCalls
from registry.errors import BadRequest

Composite = Literal[
    "audit_network_coverage",
    "churn_risk",
    "detect_usage_anomalies",
    "diagnose_subscriber",
    "fleet_health",
    "high_cost_subscribers",
    "marketing_intelligence",
    "optimize_package",
]
"""The composites that may be scheduled (decisions.md 10)."""
COMPOSITES_WITH_RANGE = ("high_cost_subscribers",)
REPORT_WINDOW_DAYS = 28
CompositeArguments = Mapping[str, JsonValue]
CompositeInput = Annotated[
    dict[str, JsonValue],
    WithJsonSchema(
        {
            "type": "object",
            "properties": {
                "accountId": {"type": "integer", "minimum": 1, "description": "Only this account, where the composite takes one."},
                "iccid": {"type": "string", "description": "SIM number of one line, where the composite takes one; absent: the fleet."},
                "start": {"type": "string", "format": "date", "description": "First UTC day of high_cost_subscribers."},
                "end": {"type": "string", "format": "date", "description": "Its last; without both: the last 28 days, at every run anew."},
                "limit": {"type": "integer", "minimum": 1, "maximum": 500, "description": "Rows of the report."},
            },
            "additionalProperties": False,
        }
    ),
]
"""The input of a composite. Which of the fields one takes, `checked_input` says."""


def check_composite_input(inside: InternalCalls, composite: Composite, given: CompositeArguments, now: float) -> str:
    """The input as JSON text, if the composite takes it; a refusal that names the field of `input` when not.

    Choice: only the form is checked here. Whether accounts and lines are the organisation's is asked at every run, since lines move.
    """
    if "starting_after" in given:
        raise BadRequest(
            "input.starting_after: a report always begins at the first row",
            param="input.starting_after",
            hint="Leave it out, and give a larger limit",
        )
    pipeline = inside.pipeline
    binding = pipeline.binding(pipeline.catalogue.operations[composite])
    try:
        binding.validate(binding.arguments(complete_input(composite, given, now)))
    except BadRequest as refusal:
        raise refusal_of_input(refusal) from None
    return orjson.dumps(given).decode()


def refusal_of_input(refusal: BadRequest) -> BadRequest:
    """The composite's refusal, told of the schedule's field."""
    field, text = refusal.param, refusal.message
    if field is None:
        return BadRequest(f"input: {text}", code=refusal.error_code, param="input", hint=refusal.hint)
    told = f"input.{text}" if text.startswith(field) else f"input.{field}: {text}"
    return BadRequest(told, code=refusal.error_code, param=f"input.{field}", hint=refusal.hint)


def complete_input(composite: str, given: CompositeArguments, now: float) -> CompositeArguments:
    """The input of one run.

    Choice: a composite that wants a range of days and is given none looks at the last 28 whole UTC days, anew at every run. A range
    that is given stays as it is.
    """
    if composite not in COMPOSITES_WITH_RANGE or "start" in given or "end" in given:
        return given
    last = utc_today(now) - timedelta(days=1)
    return {**given, "start": (last - timedelta(days=REPORT_WINDOW_DAYS - 1)).isoformat(), "end": last.isoformat()}
