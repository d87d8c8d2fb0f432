"""An intent as its owner sees it: made of its row, with the eSIM unsealed."""

from typing import Annotated, Literal, NotRequired, cast

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.ledger.esims import Esim, EsimProfile, open_esim_profile, render_esim_profile
from operations.plans import Plan
from registry.free_text import FreeText
from storage.intents import IntentRow
from storage.sealing import Keyring

IntentId = Annotated[str, Field(max_length=64, description="Intent id, cni_...")]


class IntentError(TypedDict):
    """Why no eSIM was issued, or why that is not known."""

    code: str
    message: str


IntentStatus = Literal["requires_plan", "processing", "succeeded", "failed"]


ROLLED_BACK = "rolled_back"


class Intent(TypedDict):
    """A request for one eSIM. `created` is Unix seconds; `plan` is as it was when it was attached."""

    id: str
    object: Literal["connectivity.intent"]
    status: IntentStatus
    livemode: bool
    plan: Plan | None
    esim: Esim | None
    metadata: dict[str, FreeText]
    error: IntentError | None
    created: int
    rolled_back: NotRequired[
        Annotated[Literal[True], Field(description="It had its eSIM, which was taken back: it did not fail to get one")]
    ]
    unresolved_issuance: NotRequired[
        Annotated[
            str, Field(description="In the answer that issued it: another key or intent of yours for this template has an unknown outcome")
        ]
    ]
    hint: NotRequired[Annotated[str, Field(description="In the answer to a call without a body: what was done, and what comes next")]]


def intent_without_codes(intent: Intent) -> Intent:
    """`intent` without what installs its eSIM."""
    esim = intent["esim"]
    return intent if esim is None else {**intent, "esim": {"iccid": esim["iccid"], "smdp_address": esim["smdp_address"]}}


def unseal_intent(row: IntentRow, keyring: Keyring) -> Intent:
    """The stored intent `row` as its owner sees it, its eSIM unsealed."""
    profile = None
    if row.iccid is not None and row.esim is not None:
        profile = open_esim_profile(row.iccid, row.esim, keyring=keyring, organisation=row.organisation, intent=row.id)
    return render_intent(row, profile)


def render_intent(row: IntentRow, profile: EsimProfile | None) -> Intent:
    """The stored intent `row` as its owner sees it, with its `profile` in the open.

    Choice: what was rolled back is `failed`, since programs know four statuses, and says in a field of its own what it is.
    """
    error: IntentError | None = orjson.loads(row.error) if row.error else None
    intent: Intent = {
        "id": row.id,
        "object": "connectivity.intent",
        "status": cast(IntentStatus, row.status),
        "livemode": bool(row.livemode),
        "plan": orjson.loads(row.plan) if row.plan else None,
        "esim": None if profile is None else render_esim_profile(profile),
        "metadata": orjson.loads(row.details),
        "error": error,
        "created": row.created,
    }
    if error is not None and error["code"] == ROLLED_BACK:
        intent["rolled_back"] = True
    return intent
