"""Events of work that took a while: reports, change sets, approvals."""

from typing import Literal

from typing_extensions import TypedDict

from operations.event_types.declaration import EventType


class ReadyReport(TypedDict):
    """A report of a schedule. `composite`: the operation that made it. `boundary` is null where somebody asked for it; RFC 3339 UTC."""

    report: str
    schedule: str
    composite: str
    state: Literal["done", "failed"]
    boundary: str | None


class DoneChangeSet(TypedDict):
    """A change set at its end, with the numbers of its rows. `unknown`: nobody knows what came of them."""

    change_set: str
    action: str
    state: Literal["applied", "partly_applied", "cancelled"]
    done: int
    skipped: int
    failed: int
    unknown: int
    not_sent: int


class RequestedApproval(TypedDict):
    """A call that waits for a person. `credential` is the key or the login that asks; `expires` is RFC 3339 UTC."""

    approval: str
    operation: str
    credential: str
    expires: str


class DecidedCall(TypedDict):
    """What a person has decided; `decided_by` is their id."""

    approval: str
    operation: str
    credential: str
    decision: Literal["approved", "declined"]
    decided_by: str


WORK_REPORT_READY = EventType(
    "work.report_ready",
    "A report of a schedule has ended: it can be read, or it could not be made.",
    ReadyReport,
    {
        "report": "rep_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "schedule": "sch_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "composite": "fleet_health",
        "state": "done",
        "boundary": "2026-11-23T05:00:00Z",
    },
    read_with="get_intelligence_schedule_report",
)

WORK_CHANGE_SET_DONE = EventType(
    "work.change_set_done",
    "A change set that was applied has come to its end: none of its rows waits or is under way.",
    DoneChangeSet,
    {
        "change_set": "chg_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "action": "set_status",
        "state": "partly_applied",
        "done": 118,
        "skipped": 2,
        "failed": 1,
        "unknown": 0,
        "not_sent": 0,
    },
    read_with="get_change_set",
)

WORK_APPROVAL_REQUESTED = EventType(
    "work.approval_requested",
    "A call waits for the approval of a person.",
    RequestedApproval,
    {
        "approval": "apr_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "operation": "operator_refund_payment",
        "credential": "key_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "expires": "2026-11-21T09:00:00Z",
    },
    read_with="list_approvals",
    admin=True,
)

WORK_APPROVAL_DECIDED = EventType(
    "work.approval_decided",
    "A person has approved or declined a call that waited.",
    DecidedCall,
    {
        "approval": "apr_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "operation": "operator_refund_payment",
        "credential": "key_01k0a8w7zv6q4k3m2n1p0r9s8t",
        "decision": "approved",
        "decided_by": "usr_01k0a8w7zv6q4k3m2n1p0r9s8t",
    },
    read_with="list_approvals",
    admin=True,
)
