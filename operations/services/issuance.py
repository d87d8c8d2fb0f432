"""Issuing the eSIM of an intent: for a test plan from nothing, at once."""

from typing import NamedTuple

import orjson

from operations.connectivity.shapes import Plan
from operations.services.esim_profile import Profile, new_test_profile, seal_profile
from registry.errors import NotSupported
from registry.ids import Ids
from storage.events import NewEvent
from storage.intents import Issued
from storage.sealing import Keyring


class Issue(NamedTuple):
    """An eSIM in the open, as it is kept, and the event that tells of it."""

    profile: Profile
    kept: Issued
    event: NewEvent


def issue_test(plan: Plan, *, intent: str, organisation: str, now: float, ids: Ids, keyring: Keyring) -> Issue:
    """A test eSIM: touches no network, belongs to nobody."""
    profile = new_test_profile(ids)
    sealed = seal_profile(profile, keyring=keyring, organisation=organisation, intent=intent)
    kept = Issued(plan["id"], orjson.dumps(plan).decode(), 0, profile.iccid, sealed)
    return Issue(profile, kept, issued_event(kept, intent=intent, organisation=organisation, now=now, ids=ids))


def issued_event(kept: Issued, *, intent: str, organisation: str, now: float, ids: Ids) -> NewEvent:
    """esim.issued: names the SIM, and leaves its activation code to the API."""
    data = orjson.dumps({"intent": intent, "iccid": kept.iccid, "plan": kept.plan_id}).decode()
    return NewEvent(ids.new("evt_"), organisation, intent, "esim.issued", kept.livemode, data, f"issued|{intent}", int(now))


def live_not_offered() -> NotSupported:
    """The ledger that keeps a live eSIM from being issued twice is not part of this version; nothing was drawn."""
    return NotSupported(
        "Live eSIMs cannot be issued by this version yet. Nothing was done",
        hint="Use test_global_1gb or test_eu_1gb; list_connectivity_plans names every plan",
    )
