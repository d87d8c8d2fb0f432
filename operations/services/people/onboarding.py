"""The state of an organisation's onboarding, which every one of its operations answers."""

from typing import Annotated, Literal, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from registry.policy import stamp
from storage.connection import Connection
from storage.people.onboarding import OnboardingRow, find_onboarding

StepName = Literal["org", "ocs", "plan", "test_esim", "complete"]
StepStatus = Literal["todo", "done", "pending", "skipped"]
PendingReason = Literal["account_absent", "account_conflict", "not_configured", "ocs_unavailable"]
DemoReason = Literal["not_connected", "not_configured", "account_absent", "no_lines", "unreadable", "ocs_timeout", "ocs_unavailable"]
# Choice: what kinds of operators there are is not shown; these are the ones that resell connectivity.
OperatorType = Literal["mno", "mvno", "mvne", "travel_esim", "iot", "enterprise", "marketplace", "other"]


class OnboardingStep(TypedDict):
    """A step. `pending`: a managed account was asked for and is not there yet."""

    step: StepName
    status: StepStatus


class OperatorDetails(TypedDict):
    """Your organisation as step org saved it; null until then."""

    id: str
    name: str
    website: str | None
    country: Annotated[str | None, Field(description="ISO 3166-1 alpha-2")]
    operator_type: OperatorType | None


class OnboardingConnection(TypedDict):
    """How your organisation reaches the charging system; a token is never shown."""

    connected: bool
    mode: Literal["managed", "own"] | None
    account_id: Annotated[int | None, Field(description="The sub-account, in managed mode")]
    former_token_until: Annotated[
        str | None, Field(description="Until then (RFC 3339) an admin can go back to the token before: onboarding_restore_ocs_token")
    ]


class StartingPlan(TypedDict):
    """The package template that you begin with."""

    template_id: int
    display_name: str | None


class TestEsim(TypedDict):
    """A line of your account as a preview; where there is none to show, a demo that exists nowhere, and why."""

    iccid: str
    demo: bool
    demo_reason: DemoReason | None
    status: Annotated[str | None, Field(description="Of the line, such as Active")]
    activated_at: Annotated[str | None, Field(description="As the charging system writes it, UTC")]
    last_used_at: Annotated[str | None, Field(description="As the charging system writes it, UTC")]


class OnboardingState(TypedDict):
    """How far your organisation has come. `current_step` is the first one to do; null when there is none."""

    object: Literal["onboarding"]
    organization: OperatorDetails
    steps: list[OnboardingStep]
    current_step: StepName | None
    connection: OnboardingConnection
    managed_path_chosen: bool
    pending: Annotated[bool, Field(description="A managed account was asked for and is not connected: ask again later")]
    pending_reason: PendingReason | None
    plan: StartingPlan | None
    test_esim: TestEsim | None
    completed: bool


EXAMPLE: OnboardingState = {
    "object": "onboarding",
    "organization": {
        "id": "org_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "name": "Fjord Mobile",
        "website": "https://fjord.example",
        "country": "NO",
        "operator_type": "mvno",
    },
    "steps": [
        {"step": "org", "status": "done"},
        {"step": "ocs", "status": "done"},
        {"step": "plan", "status": "todo"},
        {"step": "test_esim", "status": "todo"},
        {"step": "complete", "status": "todo"},
    ],
    "current_step": "plan",
    "connection": {"connected": True, "mode": "managed", "account_id": 8101, "former_token_until": None},
    "managed_path_chosen": True,
    "pending": False,
    "pending_reason": None,
    "plan": None,
    "test_esim": None,
    "completed": False,
}


def read_state(connection: Connection, *, organisation: str) -> OnboardingState:
    """The state as it is now."""
    return state_of(find_onboarding(connection, organisation=organisation))


def state_of(row: OnboardingRow) -> OnboardingState:
    """The state that a row tells."""
    steps = steps_of(row)
    # Choice: what is pending is waited for by others, so it is not the step to do now.
    current: StepName | None = next((step["step"] for step in steps if step["status"] == "todo"), None)
    template = row.template_id
    return {
        "object": "onboarding",
        "organization": {
            "id": row.id,
            "name": row.name,
            "website": row.website,
            "country": row.country,
            "operator_type": cast(OperatorType | None, row.operator_type),
        },
        "steps": steps,
        "current_step": None if row.completed_at is not None else current,
        "connection": {
            "connected": row.mode is not None,
            "mode": cast(Literal["managed", "own"] | None, row.mode),
            "account_id": row.account_id if row.mode == "managed" else None,
            "former_token_until": None if row.former_token_expires_at is None else stamp(row.former_token_expires_at),
        },
        "managed_path_chosen": row.managed_chosen_at is not None,
        "pending": row.pending_reason is not None,
        "pending_reason": cast(PendingReason | None, row.pending_reason),
        "plan": None if template is None else {"template_id": template, "display_name": row.plan_name},
        "test_esim": None if row.test_esim is None else cast(TestEsim, orjson.loads(row.test_esim)),
        "completed": row.completed_at is not None,
    }


def steps_of(row: OnboardingRow) -> list[OnboardingStep]:
    """Each step in its order. Whether there is a connection is what holds now, whoever made or ended it."""
    connected: StepStatus = "done" if row.mode is not None else "todo" if row.pending_reason is None else "pending"
    plan: StepStatus = "done" if row.plan_saved_at is not None else "todo" if row.plan_skipped_at is None else "skipped"
    return [
        {"step": "org", "status": done(row.org_saved_at is not None)},
        {"step": "ocs", "status": connected},
        {"step": "plan", "status": plan},
        {"step": "test_esim", "status": done(row.test_esim is not None)},
        {"step": "complete", "status": done(row.completed_at is not None)},
    ]


def done(was: bool) -> StepStatus:
    """A step that is done or not."""
    return "done" if was else "todo"
