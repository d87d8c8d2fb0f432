"""Issuing test eSIMs, from nothing and at once; and the event that tells of any eSIM that was issued."""

from typing import NamedTuple

import orjson

from operations.connectivity.shapes import Plan
from operations.services.issuing.esim_profile import Profile, new_test_profile, seal_profile
from registry.ids import Ids
from storage.issuing.intents import Issued
from storage.issuing.issuance import IssuanceRow
from storage.secrets.sealing import Keyring
from storage.webhooks.events import NewEvent


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


def drawn_event(row: IssuanceRow, *, plan: str | None, now: float, ids: Ids) -> NewEvent:
    """esim.issued of an eSIM that was drawn from stock. Choice: without an intent it names the key and the template instead.

    Its `dedup` is the row's, so that whoever settles the row, and however often, it is told once.
    """
    data: dict[str, object] = {"intent": row.intent, "iccid": row.iccid, "plan": plan}
    if row.intent is None:
        data |= {"idempotency_key": row.key, "package_template_id": row.template_id}
    subject = row.intent or f"{row.organisation}|{row.key}"
    text = orjson.dumps(data).decode()
    return NewEvent(ids.new("evt_"), row.organisation, row.intent or "", "esim.issued", 1, text, f"issued|{subject}", int(now))
