"""An intent as it is shown to its owner."""

from typing import cast

import orjson

from operations.connectivity.shapes import Intent, Status
from operations.services.issuing.esim_profile import Profile, esim_of, open_profile
from storage.issuing.intents import IntentRow
from storage.secrets.sealing import Keyring


def intent_of(row: IntentRow, keyring: Keyring) -> Intent:
    """A stored intent, its eSIM unsealed."""
    profile = None
    if row.iccid is not None and row.esim is not None:
        profile = open_profile(row.iccid, row.esim, keyring=keyring, organisation=row.organisation, intent=row.id)
    return shown(row, profile)


def shown(row: IntentRow, profile: Profile | None) -> Intent:
    """The intent's answer, with the profile in the open."""
    return {
        "id": row.id,
        "object": "connectivity.intent",
        "status": cast(Status, row.status),
        "livemode": bool(row.livemode),
        "plan": orjson.loads(row.plan) if row.plan else None,
        "esim": None if profile is None else esim_of(profile),
        "metadata": orjson.loads(row.details),
        "error": orjson.loads(row.error) if row.error else None,
        "created": row.created,
    }
