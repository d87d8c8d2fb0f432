"""How far an organisation has come in setting itself up."""

from typing import NamedTuple

import sqlalchemy as sa
from sqlmodel import Field

from storage.engine.sql import BigInt, Command, Connection, Query, StatementBuild, TableDescription, upsert, writes
from storage.former_tokens import FORMER_TOKEN
from storage.organisations import ORGANISATION, count_change

FIELDS_OF_ORGANISATION = ("id", "name", "mode", "account_id", "assigned_account_id")


class OnboardingRow(NamedTuple):
    """An organisation with its steps; what it has not done yet is None. `test_esim` is JSON."""

    id: str
    name: str
    mode: str | None
    account_id: int | None
    assigned_account_id: int | None
    website: str | None
    country: str | None
    operator_type: str | None
    org_saved_at: float | None
    managed_chosen_at: float | None
    pending_reason: str | None
    template_id: BigInt | None
    plan_name: str | None
    plan_saved_at: float | None
    plan_skipped_at: float | None
    test_esim: str | None
    completed_at: float | None
    former_token_expires_at: float | None


class OnboardingTable(TableDescription, row=OnboardingRow, without=(*FIELDS_OF_ORGANISATION, "former_token_expires_at"), table=True):
    """How far an organisation has come: when each step was done, Unix seconds."""

    organisation: str = Field(primary_key=True, foreign_key="organisation.id")
    test_esim_at: float | None


ONBOARDING = OnboardingTable.table

FIND_ONBOARDING = Query(
    OnboardingRow,
    sa.select(
        *((ORGANISATION if name in FIELDS_OF_ORGANISATION else ONBOARDING).c[name] for name in OnboardingRow._fields[:-1]),
        FORMER_TOKEN.c.expires_at.label("former_token_expires_at"),
    )
    .join_from(ORGANISATION, ONBOARDING, ONBOARDING.c.organisation == ORGANISATION.c.id, isouter=True)
    .join(FORMER_TOKEN, FORMER_TOKEN.c.organisation == ORGANISATION.c.id, isouter=True)
    .where(ORGANISATION.c.id == sa.bindparam("organisation")),
)

RENAME_ORGANISATION = Command(
    lambda _: sa.update(ORGANISATION).where(ORGANISATION.c.id == sa.bindparam("organisation")).values(name=sa.bindparam("new_name"))
)


SAVE_DETAILS = Command(upsert(ONBOARDING, ("organisation", "website", "country", "operator_type", "org_saved_at"), key=["organisation"]))


def find_onboarding(connection: Connection, *, organisation: str) -> OnboardingRow:
    """An organisation and how far it has come."""
    row = connection.first(FIND_ONBOARDING, organisation=organisation)
    if row is None:
        raise LookupError("a caller's organisation is never removed")
    return row


def save_onboarding_details(
    connection: Connection, *, organisation: str, name: str, website: str | None, country: str, operator_type: str, now: float
) -> None:
    """Who the operator is; the organisation is called so from now on. `now`: Unix seconds."""
    count_change(connection)
    connection.run(RENAME_ORGANISATION, organisation=organisation, new_name=name)
    values = {"website": website, "country": country, "operator_type": operator_type}
    connection.run(SAVE_DETAILS, organisation=organisation, org_saved_at=now, **values)


@writes
def choose_managed(*, organisation: str, pending_reason: str | None, now: float) -> StatementBuild:
    """A managed account is wanted; the reason says why there is none yet. `now`: Unix seconds."""
    return upsert(ONBOARDING, key=["organisation"], organisation=organisation, managed_chosen_at=now, pending_reason=pending_reason)


@writes
def choose_own(*, organisation: str) -> StatementBuild:
    """A token of its own is wanted, and no managed account any more."""
    return upsert(ONBOARDING, key=["organisation"], organisation=organisation, managed_chosen_at=None, pending_reason=None)


@writes
def save_plan(*, organisation: str, template_id: int, plan_name: str | None, now: float) -> StatementBuild:
    """The plan to begin with. `now`: Unix seconds."""
    saved = {"template_id": template_id, "plan_name": plan_name}
    return upsert(ONBOARDING, key=["organisation"], where=None, organisation=organisation, **saved, plan_saved_at=now, plan_skipped_at=None)


@writes
def skip_plan(*, organisation: str, now: float) -> StatementBuild:
    """No plan to begin with; one that was saved is forgotten. `now`: Unix seconds."""
    forgotten = dict.fromkeys(("template_id", "plan_name", "plan_saved_at"))
    return upsert(ONBOARDING, key=["organisation"], where=None, organisation=organisation, **forgotten, plan_skipped_at=now)


@writes
def save_test_esim(*, organisation: str, test_esim: str, now: float) -> StatementBuild:
    """What was previewed. `now`: Unix seconds."""
    return upsert(ONBOARDING, key=["organisation"], organisation=organisation, test_esim=test_esim, test_esim_at=now)


@writes
def complete_onboarding(*, organisation: str, now: float) -> sa.Executable:
    """Completed, if that was not so before and nothing is missing for it. `now`: Unix seconds."""
    return (
        sa.update(ONBOARDING)
        .where(
            ONBOARDING.c.organisation == organisation,
            ONBOARDING.c.completed_at.is_(None),
            ONBOARDING.c.org_saved_at.is_not(None),
            ONBOARDING.c.managed_chosen_at.is_not(None)
            | sa.exists(sa.select(ORGANISATION.c.id).where(ORGANISATION.c.id == organisation, ORGANISATION.c.mode.is_not(None))),
        )
        .values(completed_at=now)
    )
