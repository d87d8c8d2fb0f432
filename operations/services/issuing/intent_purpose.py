"""Drawing an eSIM for an intent with a live plan."""

from dataclasses import dataclass, field

import orjson

from operations.connectivity.intent_view import intent_of, shown
from operations.connectivity.shapes import Intent, Plan
from operations.services.issuing.drawn_esim import DrawnEsim
from operations.services.issuing.esim_profile import seal_profile
from operations.services.issuing.issuance import drawn_event
from operations.services.issuing.purpose import UNKNOWN, unknown_outcome
from registry.errors import Refusal
from registry.ids import Ids
from registry.ports import Conclusion
from storage.connection import Connection
from storage.issuing.intents import (
    LOST_ERROR,
    Awaited,
    IntentRow,
    await_esim,
    end_intent,
    find_intent,
    forget_intent,
    give_esim,
    insert_intent,
    not_confirmable,
    note_error,
    reopen_intent,
    wait_again,
)
from storage.issuing.issuance import IssuanceRow
from storage.network.catching_up import catch_up
from storage.secrets.sealing import Keyring
from storage.webhooks.events import emit


@dataclass(slots=True)
class IntentPurpose:
    """`intent` is as it is once the call is sent; `waited`: it was there before and waited for its plan."""

    intent: IntentRow
    waited: bool
    status: int
    keyring: Keyring = field(repr=False)
    ids: Ids
    warning: str | None = None

    def sent(self) -> tuple[int, object]:
        """It is processing, and what will come of it is not known."""
        return self.status, shown(self.intent._replace(error=LOST_ERROR), None)

    def begin(self, connection: Connection) -> None:
        """The intent is processing."""
        if not self.waited:
            insert_intent(connection, row=self.intent, event=None, ids=self.ids)
            return
        plan = Awaited(self.intent.plan_id or "", self.intent.plan or "")
        if await_esim(connection, intent=self.intent.id, organisation=self.intent.organisation, awaited=plan) is None:
            raise not_confirmable("no longer waiting for a plan")

    def undo(self, connection: Connection) -> None:
        """The intent is as it was before, or was never there."""
        away = wait_again if self.waited else forget_intent
        away(connection, intent=self.intent.id, organisation=self.intent.organisation)

    def issued(self, connection: Connection, row: IssuanceRow, esim: DrawnEsim, now: float) -> Conclusion:
        """The intent has its eSIM, and esim.issued says so."""
        id, organisation = self.intent.id, self.intent.organisation
        sealed = seal_profile(esim.profile, keyring=self.keyring, organisation=organisation, intent=id)
        given = give_esim(connection, intent=id, organisation=organisation, iccid=esim.iccid, esim=sealed)
        if given is not None:
            emit(connection, event=drawn_event(row, plan=given.plan_id, now=now, ids=self.ids), ids=self.ids)
            named = {"intent": id, "organisation": organisation, "iccid": esim.iccid}
            catch_up(connection, **named, package_id=row.package_id, since=row.dispatched, now=now, ids=self.ids)
        return Conclusion(self.status, self.view(connection), False, "ok" if self.warning is None else "unresolved_issuance")

    def failed(self, connection: Connection, row: IssuanceRow, refusal: Refusal) -> Conclusion:
        """The intent says why there is no eSIM."""
        del row
        self.end(connection, refusal.error_code, refusal.message)
        return Conclusion(self.status, self.view(connection), False, refusal.error_code)

    def reopen(self, connection: Connection) -> None:
        """The intent is processing again: it may get its eSIM yet."""
        reopen_intent(connection, intent=self.intent.id, organisation=self.intent.organisation)

    def unknown(self, connection: Connection, row: IssuanceRow, code: str) -> Conclusion:
        """The intent stays processing, and says so."""
        del row
        error = LOST_ERROR if code == UNKNOWN else error_of(code, unknown_outcome(code).message)
        note_error(connection, intent=self.intent.id, organisation=self.intent.organisation, error=error)
        return Conclusion(self.status, self.view(connection), True, code)

    def end(self, connection: Connection, code: str, message: str) -> None:
        """There is no eSIM, or none any more."""
        end_intent(connection, intent=self.intent.id, organisation=self.intent.organisation, error=error_of(code, message))

    def view(self, connection: Connection) -> Intent:
        """The intent as it is now."""
        row = find_intent(connection, intent=self.intent.id, organisation=self.intent.organisation)
        shows = intent_of(row or self.intent, self.keyring)
        if self.warning is not None:
            shows["unresolved_issuance"] = self.warning
        return shows


def error_of(code: str, message: str) -> str:
    """An intent's error as it is kept."""
    return orjson.dumps({"code": code, "message": message}).decode()


def processing(row: IntentRow, plan: Plan) -> IntentRow:
    """An intent whose eSIM is about to be drawn."""
    return row._replace(status="processing", livemode=1, plan_id=plan["id"], plan=orjson.dumps(plan).decode())
