"""What an organisation on the stage has at the payment processor, and what documented inputs name of it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from operations.billing.identity_sessions import NewSession
from operations.billing.payment_account import oauth_state_digest
from simulators.processor.fraud import open_review
from simulators.processor.onboarding import authorize_oauth, open_standard_account
from simulators.processor.state import ValueList
from simulators.processor.webhooks import SIGNATURE_HEADER, sign_webhook
from storage.connect_accounts import ConnectState, insert_connect_state
from storage.identity_sessions import IdentitySession, insert_identity_session
from tests.contract.changes import CHANGE_INPUTS
from tests.contract.connections import CONNECTED_ORGANISATION
from tests.contract.intelligence import INTELLIGENCE
from tests.contract.invoices import INVOICED
from tests.contract.orders import ORDERS
from tests.contract.shops import SHOP_INPUTS
from tests.world import Credentials, World

Input = dict[str, Any]


async def account(world: World, who: Credentials) -> Input:
    await world.connect_payments(who)
    return {}


async def review(world: World, who: Credentials) -> Input:
    """A payment that is held up."""
    account = await world.connect_payments(who)
    charge = await world.charge(account, 2500, "EUR")
    async with world.payments.turn(writes=True) as state:
        return {"id": open_review(state, account, charge).id}


async def value_list(world: World, who: Credentials) -> Input:
    """A list that fraud rules go by."""
    account = await world.connect_payments(who)
    async with world.payments.turn(writes=True) as state:
        row = ValueList(state.new_id("rsl_"), state.now(), "blocked_countries", "Countries", "country")
        state.book(account).value_lists[row.id] = row
    return {"value_list": row.id}


async def consent(world: World, who: Credentials) -> Input:
    given = world.ids.new("state_")
    row = ConnectState(oauth_state_digest(given), who.organisation, who.person, world.clock.now() + 600)
    await world.store.write(insert_connect_state, state=row)
    async with world.payments.turn(writes=True) as state:
        return {"code": authorize_oauth(state, open_standard_account(state).id), "state": given}


async def identity_session(world: World, who: Credentials) -> Input:
    id, now = world.ids.new("ids_"), int(world.clock.now())
    kind = NewSession(type="document").type
    row = IdentitySession(id, who.organisation, who.person, kind, "requires_input", None, None, now, now)
    await world.store.write(insert_identity_session, session=row)
    return {"id": id}


async def charge(world: World, who: Credentials) -> Input:
    account = await world.connect_payments(who)
    made = await world.charge(account, 1490, "EUR")
    await world.settle_payments()
    return {"charge": made}


async def funds(world: World, who: Credentials) -> Input:
    await world.charge(await world.connect_payments(who), 99_000, "EUR", outcome="available")
    return {}


async def dispute(world: World, who: Credentials) -> Input:
    account = await world.connect_payments(who)
    made = await world.charge(account, 1490, "EUR")
    opened = await world.ask_payments("POST", "disputes", {"account": account, "charge": made})
    await world.settle_payments()
    return {"id": opened["id"]}


def signature(world: World, body: bytes) -> str:
    """The header with which the processor would send a body."""
    return sign_webhook(body, world.payments.webhook_secret, world.clock.now())[SIGNATURE_HEADER]


PREPARED: Mapping[str, Callable[[World, Credentials], Awaitable[Input]]] = {
    "operator_billing_connect_dashboard_link": account,
    "operator_billing_get_payout_schedule": account,
    "operator_billing_update_payout_schedule": account,
    "operator_billing_approve_fraud_review": review,
    "operator_billing_add_value_list_item": value_list,
    "operator_billing_connect_oauth_complete": consent,
    "operator_identity_update_session": identity_session,
    "operator_billing_create_refund": charge,
    "operator_billing_create_manual_payout": funds,
    "operator_billing_submit_dispute_evidence": dispute,
    **CONNECTED_ORGANISATION,
    **INVOICED,
    **SHOP_INPUTS,
    **ORDERS,
    **INTELLIGENCE,
    **CHANGE_INPUTS,
}
"""Operations that are about something there: how it comes to be, and what of the documented input names it."""
UNCONNECTED = {
    "operator_billing_connect_dashboard_link",
    "operator_billing_get_payout_schedule",
    "operator_billing_update_payout_schedule",
    "operator_billing_approve_fraud_review",
    "operator_billing_add_value_list_item",
    "operator_billing_create_refund",
    "operator_billing_create_manual_payout",
    "operator_billing_submit_dispute_evidence",
}
"""What is refused with 409 without an account there."""


async def prepared(world: World, who: Credentials, operation: str) -> Input:
    """What stands in the operation's documented input in place of the documented names."""
    prepare = PREPARED.get(operation)
    return {} if prepare is None else await prepare(world, who)
