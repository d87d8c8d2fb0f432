"""What eSIMs are drawn for: an operator who names account, template and window; an intent with a live plan; an order of a shop."""

from dataclasses import dataclass, field
from typing import Annotated, Literal, NotRequired

import orjson
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Deps
from operations.ledger.esims import DrawnEsim, seal_esim_profile
from operations.ledger.intents import Intent, render_intent, unseal_intent
from operations.ledger.issuance import MANUAL_RECONCILIATION, OUTCOME_UNKNOWN, PACKAGE_ADAPTING, PACKAGE_NOT_ADAPTED, IssuanceTarget
from operations.ledger.orders import (
    announce_order_failed,
    announce_order_ready,
    announce_order_review,
    announce_order_unadapted,
    mail_late_delivery,
)
from operations.plans import Plan
from registry.errors import Conflict, OcsError, Refusal
from registry.free_text import FreeText
from registry.ids import Ids
from registry.ports import Conclusion
from storage.engine.sql import Connection
from storage.events import NewEvent, emit_event
from storage.intents import (
    LOST_ERROR,
    AwaitedPlan,
    IntentRow,
    await_esim,
    await_plan_again,
    end_intent,
    find_intent,
    forget_intent,
    give_esim,
    insert_intent,
    intent_not_confirmable,
    note_intent_error,
    reopen_intent,
)
from storage.issuance import IssuanceRow
from storage.order_queue import OrderEsim, fail_order, mark_order_ready, reopen_order, review_order, send_order, unsend_order
from storage.sealing import Keyring
from storage.sightings import apply_early_sightings

INVENTORY_CREATED = 201


class IssuedEsim(TypedDict):
    """An eSIM from stock with its package, and what installs it: whoever holds the codes can install it."""

    iccid: str
    smdpServer: str | None
    activationCode: str | None
    urlQrCode: Annotated[str | None, Field(description="LPA:1$server$code")]
    subscriberId: int | None
    esimId: int | None
    subsPackageId: int | None
    userSimName: Annotated[FreeText | None, Field(description="Null when it was found out later")]
    idempotencyKey: str
    status: Literal["issued"]
    unresolved_issuance: NotRequired[Annotated[str, Field(description="Another key of yours for this template: outcome unknown")]]


class IssuedData(TypedDict):
    """`data` holds the eSIM."""

    data: IssuedEsim


@dataclass(slots=True)
class InventoryTarget:
    """The ledger's row is all there is of it."""

    key: str
    request_id: str
    ids: Ids
    warning: str | None = None

    def sent(self) -> tuple[int, object]:
        refusal = unknown_issuance()
        return refusal.status, refusal.body(self.request_id)

    def begin(self, connection: Connection) -> None:
        """Nothing beside the row."""

    def undo(self, connection: Connection) -> None:
        """Nothing beside the row."""

    def issued(self, connection: Connection, row: IssuanceRow, esim: DrawnEsim, now: float) -> Conclusion:
        emit_event(connection, event=event_of_drawn_esim(row, plan=None, now=now, ids=self.ids), ids=self.ids)
        shows: IssuedEsim = {
            "iccid": esim.iccid,
            "smdpServer": esim.smdp,
            "activationCode": esim.code,
            "urlQrCode": esim.qr,
            "subscriberId": esim.subscriber_id,
            "esimId": esim.sim_id,
            "subsPackageId": esim.package_id,
            "userSimName": esim.name,
            "idempotencyKey": self.key,
            "status": "issued",
        }
        if self.warning is not None:
            shows["unresolved_issuance"] = self.warning
        answer: IssuedData = {"data": shows}
        return Conclusion(INVENTORY_CREATED, answer, False, "ok" if self.warning is None else "unresolved_issuance")

    def failed(self, connection: Connection, row: IssuanceRow, refusal: Refusal) -> Conclusion:
        return Conclusion(refusal.status, refusal.body(self.request_id), False, refusal.error_code, nothing_done=True)

    def adapting(self, connection: Connection, row: IssuanceRow, refusal: Refusal | None) -> Conclusion:
        """Never asked: an operator names a template, so that its package stays as it is made."""
        del refusal
        return self.unknown(connection, row, PACKAGE_ADAPTING)

    def reopen(self, connection: Connection) -> None:
        """Nothing beside the row."""

    def unknown(self, connection: Connection, row: IssuanceRow, code: str = OUTCOME_UNKNOWN) -> Conclusion:
        refusal = unknown_issuance(code)
        return Conclusion(refusal.status, refusal.body(self.request_id), True, code)


def event_of_drawn_esim(row: IssuanceRow, *, plan: str | None, now: float, ids: Ids) -> NewEvent:
    """esim.issued of an eSIM that was drawn from stock. Choice: without an intent it names the key and the template instead.

    Its `dedup` is the row's, so that whoever settles the row, and however often, it is told once.
    """
    data: dict[str, object] = {"intent": row.intent, "iccid": row.iccid, "plan": plan}
    if row.intent is None:
        data |= {"idempotency_key": row.key, "package_template_id": row.template_id}
    subject = row.intent or f"{row.organisation}|{row.key}"
    text = orjson.dumps(data).decode()
    return NewEvent(ids.new("evt_"), row.organisation, row.intent or "", "esim.issued", 1, text, f"issued|{subject}", int(now))


def unknown_issuance(code: str = OUTCOME_UNKNOWN) -> OcsError:
    """The refusal that keeps its key for ever."""
    if code == MANUAL_RECONCILIATION:
        text = "Whether an eSIM was drawn could not be found out; a person at the service has to settle it. Keep the key"
        return OcsError(text, code=MANUAL_RECONCILIATION, outcome_unknown=True, hint="It is never drawn a second time under this key")
    text = "The charging system did not say whether an eSIM was drawn. Keep the key: it is found out by itself, and never drawn twice"
    return OcsError(
        text, code=OUTCOME_UNKNOWN, outcome_unknown=True, hint="Repeat the call with the same key later to learn what came of it"
    )


@dataclass(slots=True)
class IntentTarget:
    """`intent` is as it is once the call is sent; `waited`: it was there before and waited for its plan."""

    intent: IntentRow
    waited: bool
    status: int
    keyring: Keyring = field(repr=False)
    ids: Ids
    warning: str | None = None

    def sent(self) -> tuple[int, object]:
        return self.status, render_intent(self.intent._replace(error=LOST_ERROR), None)

    def begin(self, connection: Connection) -> None:
        if not self.waited:
            insert_intent(connection, row=self.intent, event=None, ids=self.ids)
            return
        plan = AwaitedPlan(self.intent.plan_id or "", self.intent.plan or "")
        if await_esim(connection, intent=self.intent.id, organisation=self.intent.organisation, awaited=plan) is None:
            raise intent_not_confirmable("no longer waiting for a plan")

    def undo(self, connection: Connection) -> None:
        away = await_plan_again if self.waited else forget_intent
        away(connection, intent=self.intent.id, organisation=self.intent.organisation)

    def issued(self, connection: Connection, row: IssuanceRow, esim: DrawnEsim, now: float) -> Conclusion:
        id, organisation = self.intent.id, self.intent.organisation
        sealed = seal_esim_profile(esim.profile, keyring=self.keyring, organisation=organisation, intent=id)
        given = give_esim(connection, intent=id, organisation=organisation, iccid=esim.iccid, esim=sealed)
        if given is not None:
            emit_event(connection, event=event_of_drawn_esim(row, plan=given.plan_id, now=now, ids=self.ids), ids=self.ids)
            named = {"intent": id, "organisation": organisation, "iccid": esim.iccid}
            apply_early_sightings(connection, **named, package_id=row.package_id, since=row.dispatched, now=now, ids=self.ids)
        return Conclusion(self.status, self.view(connection), False, "ok" if self.warning is None else "unresolved_issuance")

    def failed(self, connection: Connection, row: IssuanceRow, refusal: Refusal) -> Conclusion:
        del row
        self.end(connection, refusal.error_code, refusal.message)
        return Conclusion(self.status, self.view(connection), False, refusal.error_code, nothing_done=True)

    def adapting(self, connection: Connection, row: IssuanceRow, refusal: Refusal | None) -> Conclusion:
        code = PACKAGE_ADAPTING if refusal is None else PACKAGE_NOT_ADAPTED
        error = intent_error_json(code, unadapted_text(row, refusal))
        note_intent_error(connection, intent=self.intent.id, organisation=self.intent.organisation, error=error)
        return Conclusion(self.status, self.view(connection), True, code)

    def reopen(self, connection: Connection) -> None:
        reopen_intent(connection, intent=self.intent.id, organisation=self.intent.organisation)

    def unknown(self, connection: Connection, row: IssuanceRow, code: str) -> Conclusion:
        del row
        error = LOST_ERROR if code == OUTCOME_UNKNOWN else intent_error_json(code, unknown_issuance(code).message)
        note_intent_error(connection, intent=self.intent.id, organisation=self.intent.organisation, error=error)
        return Conclusion(self.status, self.view(connection), True, code)

    def end(self, connection: Connection, code: str, message: str) -> None:
        end_intent(connection, intent=self.intent.id, organisation=self.intent.organisation, error=intent_error_json(code, message))

    def view(self, connection: Connection) -> Intent:
        row = find_intent(connection, intent=self.intent.id, organisation=self.intent.organisation)
        shows = unseal_intent(row or self.intent, self.keyring)
        if self.warning is not None:
            shows["unresolved_issuance"] = self.warning
        return shows


def unadapted_text(row: IssuanceRow, refusal: Refusal | None) -> str:
    """Why an eSIM that was drawn is not handed out yet; `refusal`: what the charging system said to setting its package."""
    if refusal is None:
        return "The eSIM was drawn, and its package is being set to the product's data and days; the eSIM is shown as soon as it is"
    return (
        f"The eSIM {row.iccid} was drawn, and the charging system refused to set its package {row.package_id} to the product's data and "
        f"days ({refusal.error_code}). It is tried again by itself, and the eSIM is shown once the package has them: modify_package_limits "
        "and modify_package_expiry set them by hand, rollback_esim_issuance takes the eSIM back"
    )


def intent_error_json(code: str, message: str) -> str:
    """The error of an intent as its row stores it."""
    return orjson.dumps({"code": code, "message": message}).decode()


def as_processing_intent(row: IntentRow, plan: Plan) -> IntentRow:
    """The intent `row` with `plan`, while its eSIM is drawn."""
    return row._replace(status="processing", livemode=1, plan_id=plan["id"], plan=orjson.dumps(plan).decode())


FULFIL_ORDER = "fulfil_storefront_order"
"""The ledger's name of what draws for orders; the key is the order's number."""
ORDER_DONE = 200


class OrderNotOurs(Conflict):
    """Another worker has the order, or it moved on; nothing was sent."""

    code = "order_not_ours"


@dataclass(slots=True)
class OrderTarget:
    """`lease` is the worker's claim on the order; without one it only settles what was sent before."""

    deps: Deps
    order: str
    organisation: str
    lease: str | None = None
    warning: str | None = None

    @property
    def ids(self) -> Ids:
        return self.deps.ids

    def sent(self) -> tuple[int, object]:
        return ORDER_DONE, self.order

    def begin(self, connection: Connection) -> None:
        now = self.deps.clock.now()
        if self.lease is None or not send_order(connection, order=self.order, token=self.lease, owner=self.deps.replica, now=now):
            raise OrderNotOurs("The order is another worker's, or not to be sent; nothing was sent")

    def undo(self, connection: Connection) -> None:
        unsend_order(connection, order=self.order)

    def issued(self, connection: Connection, row: IssuanceRow, esim: DrawnEsim, now: float) -> Conclusion:
        """The buyer has the eSIM, and esim.issued tells of it, once.

        Choice: an eSIM that is named once the money is on its way back is the ledger's alone, to be given back to stock by a person.
        """
        sealed = seal_esim_profile(esim.profile, keyring=self.deps.keyring, organisation=self.organisation, intent=self.order)
        if mark_order_ready(connection, order=self.order, esim=OrderEsim(esim.iccid, sealed, esim.package_id), now=now):
            emit_event(connection, event=event_of_drawn_esim(row, plan=None, now=now, ids=self.deps.ids), ids=self.deps.ids)
            announce_order_ready(connection, self.deps, self.order)
        return Conclusion(ORDER_DONE, self.order, False, "ok")

    def failed(self, connection: Connection, row: IssuanceRow, refusal: Refusal) -> Conclusion:
        if fail_order(connection, order=self.order, code=refusal.error_code, now=self.deps.clock.now()):
            announce_order_failed(connection, self.deps, self.order)
        return Conclusion(ORDER_DONE, self.order, False, refusal.error_code)

    def adapting(self, connection: Connection, row: IssuanceRow, refusal: Refusal | None) -> Conclusion:
        """The order stays in provisioning for the moment that it takes; once it was refused, its operator has to look."""
        if refusal is None:
            return Conclusion(ORDER_DONE, self.order, True, PACKAGE_ADAPTING)
        if review_order(connection, order=self.order, code=PACKAGE_NOT_ADAPTED, now=self.deps.clock.now()):
            announce_order_unadapted(connection, self.deps, self.order)
        return Conclusion(ORDER_DONE, self.order, True, PACKAGE_NOT_ADAPTED)

    def reopen(self, connection: Connection) -> None:
        """It had failed, and now an eSIM is named for it: the refund waits for a person, unless it has been begun. That one stands."""
        if reopen_order(connection, order=self.order, code=MANUAL_RECONCILIATION, now=self.deps.clock.now()):
            announce_order_review(connection, self.deps, self.order)
        else:
            mail_late_delivery(connection, self.deps, self.order)

    def unknown(self, connection: Connection, row: IssuanceRow, code: str = OUTCOME_UNKNOWN) -> Conclusion:
        if review_order(connection, order=self.order, code=code, now=self.deps.clock.now()):
            announce_order_review(connection, self.deps, self.order)
        return Conclusion(ORDER_DONE, self.order, True, code)


def target_of_issuance(connection: Connection, deps: Deps, row: IssuanceRow) -> IssuanceTarget:
    """The target that the ledger's `row` was drawn for, rebuilt long after its call."""
    if row.operation == FULFIL_ORDER:
        return OrderTarget(deps, row.key, row.organisation)
    if row.intent is None:
        return InventoryTarget(row.key, deps.ids.new("req_"), deps.ids)
    intent = find_intent(connection, intent=row.intent, organisation=row.organisation)
    if intent is None:
        raise RuntimeError(f"there is no intent {row.intent}")
    status = 201 if row.operation == "create_connectivity_intent" else 200
    return IntentTarget(intent, False, status, deps.keyring, deps.ids)
