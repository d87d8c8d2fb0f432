"""The control API: what a test, or a person who tries things out, does to the processor beside its wire."""

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Annotated, Literal, Protocol, TypeAlias, TypeVar, cast

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from simulators.processor.accounts import account_json
from simulators.processor.call import ProcessorRefusal, find_row
from simulators.processor.cards import SimulatedCard
from simulators.processor.charges import charge_json, make_charge
from simulators.processor.checkout import complete_checkout, enter_promotion, find_checkout_session, session_json
from simulators.processor.clock import catch_up_processor
from simulators.processor.demo_account import make_demo_account
from simulators.processor.disputes import close_dispute, dispute_json, open_dispute
from simulators.processor.faults import FaultOrder, ProcessorCall, ProcessorFaults
from simulators.processor.fraud import open_review, review_json
from simulators.processor.invoices import invoice_json, pay_invoice_by_card
from simulators.processor.onboarding import (
    attach_account,
    authorize_oauth,
    complete_onboarding,
    open_standard_account,
    release_account,
    restrict_account,
)
from simulators.processor.payouts import complete_payout, fail_payout, payout_json
from simulators.processor.state import JsonObject, ProcessorState
from simulators.server import WireAnswer, WireRequest

ControlModelT = TypeVar("ControlModelT", bound=BaseModel)
ProcessorControl: TypeAlias = Callable[[ProcessorState, str, object], object]
CardOutcome = Literal["succeeded", "available", "declined", "no_funds", "disputed", "inquiry", "reviewed", "refund_fails"]
OUTCOME_CARDS: dict[CardOutcome, str] = {
    "succeeded": "4242424242424242",
    "available": "4000000000000077",
    "declined": "4000000000000002",
    "no_funds": "4000000000009995",
    "disputed": "4000000000000259",
    "inquiry": "4000000000001976",
    "reviewed": "4000000000009235",
    "refund_fails": "4000000000005126",
}
ControlAmount = Annotated[int, Field(ge=1, le=99_999_999)]


def read_control_body(model: type[ControlModelT], body: object) -> ControlModelT:
    """The body as a `model`. Raises ProcessorRefusal that says what is wrong."""
    try:
        return model.model_validate({} if body is None else body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise ProcessorRefusal(f"{'.'.join(map(str, first['loc'])) or 'body'}: {first['msg']}") from None


class ControlBody(BaseModel):
    """A body of the control API. Unknown members are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NewCharge(ControlBody):
    account: str
    amount: ControlAmount
    currency: Annotated[str, Field(pattern="^[A-Za-z]{3}$")]
    fee: Annotated[int, Field(ge=0)] = 0
    metadata: dict[str, str] = {}
    description: str | None = None
    email: str | None = None
    outcome: CardOutcome = "succeeded"


class NewAccount(ControlBody):
    """A Standard account that has existed for long; `connected`: the platform has access already."""

    kind: Literal["standard"] = "standard"
    name: str = "Own account"
    country: Annotated[str, Field(pattern="^[A-Z]{2}$")] = "US"
    email: str | None = None
    connected: bool = True


class NewPast(ControlBody):
    """An Express account with `days` of payments, refunds, payouts and a dispute. `told`: all of it is sent as webhooks."""

    name: str = "Demo reseller"
    country: Annotated[str, Field(pattern="^[A-Z]{2}$")] = "US"
    email: str = "demo@example.com"
    days: Annotated[int, Field(ge=1, le=90)] = 42
    told: bool = False


class AccountChange(ControlBody):
    """enable: onboarding is complete. restrict: `due` is asked for. deauthorize: the owner lets the platform go. authorize: a code.

    bank_fails, bank_works: what becomes of the payouts from now on.
    """

    do: Literal["enable", "restrict", "deauthorize", "authorize", "bank_fails", "bank_works"]
    due: list[str] = []


class NewDispute(ControlBody):
    account: str
    charge: str
    reason: str = "fraudulent"
    inquiry: bool = False
    amount: ControlAmount | None = None


class DisputeEnd(ControlBody):
    account: str
    outcome: Literal["won", "lost"]


class NewReview(ControlBody):
    account: str
    charge: str


class PayoutEnd(ControlBody):
    account: str
    status: Literal["paid", "failed"]


class PagePayment(ControlBody):
    """Somebody pays on the page of an invoice or of a checkout."""

    outcome: CardOutcome = "succeeded"
    email: str = "buyer@example.com"
    promotion: str | None = None


class WebhookChange(ControlBody):
    """How webhooks are sent from now on, and an event that is to be sent once more."""

    hold: bool | None = None
    shuffle: bool | None = None
    double: bool | None = None
    redeliver: str | None = None


class ClockChange(ControlBody):
    """The processor's clock runs ahead of the wall's by so much more."""

    advance: Annotated[int, Field(ge=0, le=400 * 86_400)]


def taking(model: type[ControlModelT], act: Callable[[ProcessorState, str, ControlModelT], object]) -> ProcessorControl:
    """The control that reads its body as a `model`."""
    return lambda state, id, body: act(state, id, read_control_body(model, body))


def processor_state(state: ProcessorState, _id: str, _body: object) -> JsonObject:
    return {
        "now": state.now(),
        "platform": state.platform,
        "client_id": state.client_id,
        "accounts": [_account_summary(state, id) for id in state.accounts if id != state.platform],
        "events": len(state.events),
        "hooks_waiting": len(state.pending) + len(state.hooks.waiting),
    }


def _account_summary(state: ProcessorState, id: str) -> JsonObject:
    account, book = state.accounts[id], state.book(id)
    return {
        "id": id,
        "kind": account.kind,
        "connected": account.attached,
        "charges_enabled": account.charges_enabled,
        **{name: len(getattr(book, name)) for name in ("charges", "refunds", "payouts", "disputes", "invoices")},
    }


def _require_account(state: ProcessorState, account: str) -> str:
    return find_row(state.accounts, account, "account", param="account").id


def control_charge(state: ProcessorState, _id: str, order: NewCharge) -> JsonObject:
    """A buyer's payment into an account; a declined one is a charge too."""
    account = _require_account(state, order.account)
    if order.fee > order.amount:
        raise ProcessorRefusal("fee: must not be more than the amount")
    try:
        made = make_charge(
            state,
            account,
            amount=order.amount,
            currency=order.currency.lower(),
            card=SimulatedCard(OUTCOME_CARDS[order.outcome], None, order.email),
            fee_amount=order.fee or None,
            metadata=order.metadata,
            description=order.description,
        ).id
    except ProcessorRefusal as refusal:
        made = str(refusal.more.get("charge", ""))
        if not made:
            raise
    return charge_json(state, state.book(account).charges[made])


def _control_new_account(state: ProcessorState, _id: str, order: NewAccount) -> JsonObject:
    row = open_standard_account(state, name=order.name, country=order.country, email=order.email)
    if order.connected:
        attach_account(state, row.id)
    return account_json(state, row)


def control_past_account(state: ProcessorState, _id: str, order: NewPast) -> JsonObject:
    row = make_demo_account(state, email=order.email, country=order.country, name=order.name, days=order.days, told=order.told)
    return account_json(state, row)


def _control_account(state: ProcessorState, id: str, order: AccountChange) -> JsonObject:
    row = state.accounts[_require_account(state, id)]
    if order.do == "authorize":
        return {"code": authorize_oauth(state, id)}
    if order.do == "enable":
        complete_onboarding(state, id)
    elif order.do == "restrict":
        restrict_account(state, id, order.due or None)
    elif order.do == "deauthorize":
        release_account(state, id)
    else:
        row.bank_fails = order.do == "bank_fails"
    return account_json(state, row)


def _control_dispute(state: ProcessorState, _id: str, order: NewDispute) -> JsonObject:
    account = _require_account(state, order.account)
    row = open_dispute(state, account, order.charge, order.reason, inquiry=order.inquiry, amount=order.amount)
    return dispute_json(state, account, row)


def _control_dispute_end(state: ProcessorState, id: str, order: DisputeEnd) -> JsonObject:
    account = _require_account(state, order.account)
    return dispute_json(state, account, close_dispute(state, account, id, order.outcome))


def _control_review(state: ProcessorState, _id: str, order: NewReview) -> JsonObject:
    return review_json(state, open_review(state, _require_account(state, order.account), order.charge))


def control_payout_end(state: ProcessorState, id: str, order: PayoutEnd) -> JsonObject:
    end = complete_payout if order.status == "paid" else fail_payout
    return payout_json(state, end(state, _require_account(state, order.account), id))


def control_invoice(state: ProcessorState, id: str, order: PagePayment) -> JsonObject:
    """Pays an invoice as its recipient does on its page; `id` is the invoice's."""
    for account, book in state.books.items():
        if id in book.invoices:
            pay_invoice_by_card(state, account, id, SimulatedCard(OUTCOME_CARDS[order.outcome], None, order.email))
            return invoice_json(state, account, book.invoices[id])
    raise ProcessorRefusal(f"No such invoice: '{id}'", status=404)


def control_checkout(state: ProcessorState, id: str, order: PagePayment) -> JsonObject:
    """Pays a checkout as the buyer does on its page; `id` is the session's."""
    where = find_checkout_session(state, id)
    if where is None:
        raise ProcessorRefusal(f"No such checkout.session: '{id}'", status=404)
    account, session = where
    if order.promotion:
        enter_promotion(state, account, id, order.promotion)
    complete_checkout(state, account, id, SimulatedCard(OUTCOME_CARDS[order.outcome], None, order.email))
    return session_json(state, session)


def _webhook_state(state: ProcessorState, _id: str, _body: object) -> JsonObject:
    found = state.hooks
    return {
        "waiting": [*state.pending, *(one.event for one in found.waiting)],
        "told": [
            {
                "event": one.event,
                "type": state.events[one.event]["type"] if one.event in state.events else None,
                "at": int(one.at),
                "status": one.status,
            }
            for one in found.told
        ],
        "hold": found.held,
        "shuffle": found.shuffled,
        "double": found.doubled,
    }


def _control_webhooks(state: ProcessorState, id: str, order: WebhookChange) -> JsonObject:
    known = state.hooks
    known.held = known.held if order.hold is None else order.hold
    known.shuffled = known.shuffled if order.shuffle is None else order.shuffle
    known.doubled = known.doubled if order.double is None else order.double
    if order.redeliver is not None:
        known.add(str(find_row(state.events, order.redeliver, "event", param="redeliver")["id"]), state.at)
    return _webhook_state(state, id, order)


def control_clock(state: ProcessorState, _id: str, order: ClockChange) -> JsonObject:
    """Time passes here and nowhere else; what falls due in it happens now."""
    state.offset += order.advance
    state.at += order.advance
    catch_up_processor(state)
    return {"now": state.now()}


PROCESSOR_CONTROLS: dict[tuple[str, str], ProcessorControl] = {
    ("GET", "state"): processor_state,
    ("POST", "charges"): taking(NewCharge, control_charge),
    ("POST", "accounts"): taking(NewAccount, _control_new_account),
    ("POST", "past"): taking(NewPast, control_past_account),
    ("POST", "accounts/{id}"): taking(AccountChange, _control_account),
    ("POST", "disputes"): taking(NewDispute, _control_dispute),
    ("POST", "disputes/{id}"): taking(DisputeEnd, _control_dispute_end),
    ("POST", "reviews"): taking(NewReview, _control_review),
    ("POST", "payouts/{id}"): taking(PayoutEnd, control_payout_end),
    ("POST", "invoices/{id}"): taking(PagePayment, control_invoice),
    ("POST", "checkouts/{id}"): taking(PagePayment, control_checkout),
    ("GET", "hooks"): _webhook_state,
    ("POST", "hooks"): taking(WebhookChange, _control_webhooks),
    ("POST", "clock"): taking(ClockChange, control_clock),
}

PROCESSOR_CONTROL_PATHS = [
    *(f"{method} /control/{path}" for method, path in PROCESSOR_CONTROLS),
    *(f"{method} /control/faults" for method in ("GET", "POST", "DELETE")),
    "GET /control/calls",
]


class ControlledProcessor(Protocol):
    """The processor, as this API knows it."""

    faults: ProcessorFaults

    @property
    def calls(self) -> Iterable[ProcessorCall]:
        """The newest calls, oldest first."""
        ...

    def turn(self, *, writes: bool) -> AbstractAsyncContextManager[ProcessorState]:
        """The state, for nobody else at the same time."""
        ...


async def control_processor(processor: ControlledProcessor, method: str, path: str, body: object) -> object:
    """One request; `path` is below /control. A refusal says what to do instead."""
    noun, slash, id = path.strip("/").partition("/")
    if noun == "faults" and not slash:
        return control_faults(processor, method, body)
    if (method, noun, slash) == ("GET", "calls", ""):
        return {"calls": [call._asdict() for call in processor.calls]}
    act = PROCESSOR_CONTROLS.get((method, f"{noun}/{{id}}" if id else noun))
    if act is None:
        raise ProcessorRefusal(f"no {method} /control/{path.strip('/')}; there are: {'; '.join(PROCESSOR_CONTROL_PATHS)}", status=404)
    async with processor.turn(writes=method != "GET") as state:
        return act(state, id, body)


def control_faults(processor: ControlledProcessor, method: str, body: object) -> JsonObject:
    """Adds one fault or a list of them behind the others; DELETE removes all."""
    queue = processor.faults.queue
    if method == "DELETE":
        queue.clear()
    elif method == "POST":
        wanted = cast("list[object]", body) if isinstance(body, list) else [body]
        queue.extend(read_control_body(FaultOrder, {"faults": wanted}).faults)
    return {"faults": [fault.model_dump(exclude_defaults=True) for fault in queue]}


async def control_answer(processor: ControlledProcessor, request: WireRequest) -> WireAnswer:
    """The answer to `request`, which came over HTTP. A refusal is an answer that says what to do instead."""
    try:
        order: object = orjson.loads(request.body) if request.body else None
        status, answer = 200, await control_processor(processor, request.method, request.path.removeprefix("/control"), order)
    except orjson.JSONDecodeError:
        status, answer = 400, {"error": {"message": "the body is not JSON"}}
    except ProcessorRefusal as refusal:
        status, answer = refusal.status, {"error": {"message": refusal.message}}
    return WireAnswer(status, orjson.dumps(answer, option=orjson.OPT_INDENT_2))
