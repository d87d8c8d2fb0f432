"""What opens an order, and what is told of orders and top-ups: events to their organisation, and mails.

A buyer names an order by a token; whoever shows a credential, by its number or by any token it ever had. Events and mails are written in
the transaction of what they tell: mails to buyers in their language, to operators in English. `deps.post()` wakes the mailer afterwards.
Where there is no address, no mail goes out, and the order's page says the same.
"""

from dataclasses import replace
from typing import TypeVar

import orjson

from clients.mail.letter import Letter
from operations.deps import Deps
from operations.event_types.declaration import EventType, new_event
from operations.event_types.order import (
    ORDER_CREATED,
    ORDER_FAILED,
    ORDER_NEEDS_REVIEW,
    ORDER_PAID,
    ORDER_READY,
    ORDER_REFUNDED,
    ORDER_TOP_UP_READY,
    OrderEventData,
)
from operations.languages import LanguageTexts, texts_in
from operations.ledger.esims import fits_qr_code, open_esim_profile, phone_lpa_text
from operations.letters import queue_letter, seal_letter
from registry.clock import DAY_SECONDS
from registry.ids import ORDER_NUMBER, ORDER_TOKEN, ORDER_TOKEN_PREFIX, Ids
from registry.policy import key_spellings
from storage.engine.sql import Connection
from storage.event_log import log_event
from storage.issuance import IssuanceRow, find_issuance_spelled
from storage.members import list_people
from storage.order_steps import add_order_step
from storage.orders import NewOrder, OrderDetail, OrderRow, find_order, find_order_detail, insert_access, order_of_token
from storage.storefronts import Storefront, storefront_of


def new_order_token(connection: Connection, *, ids: Ids, order: str, now: float) -> str:
    """A token that opens the order with the number `order`. It is nowhere but in what is returned."""
    token = ids.secret(ORDER_TOKEN_PREFIX)
    insert_access(connection, order=order, token=token, now=now)
    return token


def find_opened_order(connection: Connection, *, named: str) -> OrderDetail | None:
    """The order that the token `named` opens for somebody without a credential; None where it was ended. A number opens nothing."""
    number = order_of_token(connection, token=named) if ORDER_TOKEN.fullmatch(named) else None
    return None if number is None else find_order_detail(connection, order=number)


def find_known_order(connection: Connection, *, named: str) -> OrderDetail | None:
    """The order with the number `named`, or that ever had the token `named`: what the holder of the storefront key sees."""
    number = order_number_of(connection, named=named)
    return find_order_detail(connection, order=number) if ORDER_NUMBER.fullmatch(number) else None


def order_number_of(connection: Connection, *, named: str) -> str:
    """The number where a token of an order is named, an ended one included; else `named` as it is.

    Only for callers that may name the order by its number: to them a token opens nothing more.
    """
    found = order_of_token(connection, token=named, ended=True) if ORDER_TOKEN.fullmatch(named) else None
    return named if found is None else found


def find_issuance_named(connection: Connection, *, organisation: str, named: str) -> IssuanceRow | None:
    """The organisation's row of the issuance ledger: by its key in any spelling, and by the id that its order had before it had a
    number."""
    keys = key_spellings(named)
    return find_issuance_spelled(connection, organisation=organisation, keys=(*keys, order_number_of(connection, named=keys[-1])))


OrderDataT = TypeVar("OrderDataT", bound=OrderEventData)


def log_order_event(connection: Connection, deps: Deps, event_type: EventType[OrderDataT], data: OrderDataT, organisation: str) -> None:
    """Writes an event of an order or a top-up in the transaction that makes it true."""
    event = new_event(event_type, data, organisation=organisation, ids=deps.ids, now=deps.clock.now(), livemode=deps.payments.live)
    log_event(connection, event=event)


def order_event_data(row: OrderRow | NewOrder, shop: Storefront) -> OrderEventData:
    """What every event of the order or top-up `row` says."""
    is_order = row.top_up_of is None
    return {
        "order": row.id if row.top_up_of is None else row.top_up_of,
        "top_up": None if is_order else row.id,
        "storefront": shop.slug,
        "plan": orjson.loads(row.bought).get("slug", ""),  # a row that somebody spoilt goes to a person, as an event, too
        "amount": row.amount,
        "currency": row.currency,
    }


def log_order_created(connection: Connection, deps: Deps, row: NewOrder, shop: Storefront) -> None:
    """Logs that the page to pay `row` on is open. Choice: what nobody can pay, since there is no page of it, is no event."""
    log_order_event(connection, deps, ORDER_CREATED, order_event_data(row, shop), row.organisation)


def log_order_paid(connection: Connection, deps: Deps, order: str) -> None:
    """Logs that `order`, or the top-up with this id, was paid as agreed."""
    row, shop = find_order_and_shop(connection, order)
    log_order_event(connection, deps, ORDER_PAID, {**order_event_data(row, shop), "paid_amount": row.paid_amount or 0}, row.organisation)


def log_order_refunded(connection: Connection, deps: Deps, order: str) -> None:
    """Logs that what was paid for `order` went back, for whoever is told of the order alone."""
    row, shop = find_order_and_shop(connection, order)
    log_order_event(connection, deps, ORDER_REFUNDED, order_event_data(row, shop), row.organisation)
    add_order_step(connection, order=row.id, step="refunded", now=deps.clock.now())


def log_order_ready(connection: Connection, deps: Deps, row: OrderRow, shop: Storefront) -> None:
    order = None if row.top_up_of is None else find_order(connection, order=row.top_up_of)
    event_type, iccid = (ORDER_READY, row.iccid) if row.top_up_of is None else (ORDER_TOP_UP_READY, order and order.iccid)
    log_order_event(connection, deps, event_type, {**order_event_data(row, shop), "iccid": iccid}, row.organisation)


def log_order_review(connection: Connection, deps: Deps, row: OrderRow, shop: Storefront) -> None:
    log_order_event(connection, deps, ORDER_NEEDS_REVIEW, {**order_event_data(row, shop), "code": row.code or ""}, row.organisation)
    add_order_step(connection, order=row.id, step="needs_review", now=deps.clock.now())


# Choice: a mail server that is away for a week is somebody's to notice; a mail that comes later than that only confuses.
ORDER_MAIL_SECONDS = 7 * DAY_SECONDS
# Choice: an organisation with more admins than this has a support address, or can live with ten mails.
MAILED_ADMINS_LIMIT = 10
SEARCHED_MEMBERS_LIMIT = 1000
HOW_TO_SETTLE_ORDER = (
    "No eSIM is drawn a second time for it. The service goes on looking by itself. What it has not found out after 24 hours, an admin of "
    "yours who is signed in settles with settle_order. Whoever runs the service can do so before: `reseller issuance list --unknown` shows "
    "the row, `reseller issuance settle` decides.\n"
)
HOW_TO_SETTLE_TOP_UP = (
    "No package is added a second time for it. The service looks at the eSIM's packages by itself. What it has not found out after 24 "
    "hours, an admin of yours who is signed in settles with settle_order. Whoever runs the service can do so before, with `reseller "
    "storefront settle`: --added, or --refund.\n"
)


def announce_order_ready(connection: Connection, deps: Deps, order: str) -> None:
    """Logs that `order` is ready, and mails the buyer its eSIM, or that the data of a top-up is on it."""
    row, shop = find_order_and_shop(connection, order)
    log_order_ready(connection, deps, row, shop)
    if row.email is None:
        return
    if row.iccid is None or row.esim is None:
        mail_buyer(connection, deps, row, shop, "added")
        return
    binding = row.esim_binding or row.id
    profile = open_esim_profile(row.iccid, row.esim, keyring=deps.keyring, organisation=row.organisation, intent=binding)
    code = phone_lpa_text(profile.activation_code, profile.smdp_address, profile.matching_id) or ""
    facts = {"whole": code, "smdp": profile.smdp_address or "", "code": profile.matching_id or ""}
    mail_buyer(connection, deps, row, shop, "ready", drawn=code if fits_qr_code(code) else None, **facts)


def announce_order_failed(connection: Connection, deps: Deps, order: str) -> None:
    """Logs that `order` failed, and mails its buyer that nothing is delivered and that the money goes back."""
    row, shop = find_order_and_shop(connection, order)
    log_order_event(connection, deps, ORDER_FAILED, {**order_event_data(row, shop), "code": row.code or ""}, row.organisation)
    add_order_step(connection, order=row.id, step="failed", now=deps.clock.now())
    words, paid = texts_in(row.language), row.paid_amount or 0
    refund = words.say("mail.failed_refund", amount=words.money(paid, row.currency)) if paid else words.say("mail.failed_free")
    mail_buyer(connection, deps, row, shop, "failed", refund=refund)


def mail_new_link(connection: Connection, deps: Deps, order: str) -> None:
    """Mails the buyer of `order` a link in place of those that were ended; without an address nothing is mailed."""
    row, shop = find_order_and_shop(connection, order)
    mail_buyer(connection, deps, row, shop, "new_link")


def announce_order_review(connection: Connection, deps: Deps, order: str) -> None:
    """Logs that nobody knows whether `order` was delivered, and mails it to the operator."""
    row, shop = find_order_and_shop(connection, order)
    log_order_review(connection, deps, row, shop)
    article, thing, how = ("A", "top-up", HOW_TO_SETTLE_TOP_UP) if row.top_up_of else ("An", "order", HOW_TO_SETTLE_ORDER)
    text = f"The {thing} {row.id} of your shop {shop.name} was paid, and the charging system did not say whether it delivered.\n\n{how}"
    mail_operator(connection, deps, row, shop, f"{article} {thing} needs review: {row.id}", text)


HOW_TO_ADAPT = (
    "It is tried again by itself, and the buyer gets it once the package has what was sold. You can set it by hand: modify_package_limits "
    "and modify_package_expiry.\n"
)


def announce_order_unadapted(connection: Connection, deps: Deps, order: str, *, reviewed: bool = False) -> None:
    """Mails the operator that the package of `order` is on its eSIM and was not set to what was sold, and logs that it needs review.

    `reviewed`: it needed review before, for another reason, which is no event once more.
    """
    row, shop = find_order_and_shop(connection, order)
    if not reviewed:
        log_order_review(connection, deps, row, shop)
    article, thing = ("A", "top-up") if row.top_up_of else ("An", "order")
    text = (
        f"The {thing} {row.id} of your shop {shop.name} was paid and its package is there, with the data and days of its template: the "
        f"charging system did not set it to those that were sold.\n\n{HOW_TO_ADAPT}"
    )
    mail_operator(connection, deps, row, shop, f"{article} {thing} needs review: {row.id}", text)


def mail_late_delivery(connection: Connection, deps: Deps, order: str) -> None:
    """Mails the operator that an eSIM or a package was named for `order` after its refund was begun."""
    row, shop = find_order_and_shop(connection, order)
    if row.top_up_of is not None:
        subject = f"A package came too late for a top-up: {row.id}"
        text = (
            f"The top-up {row.id} of your shop {shop.name} had failed and its refund was begun; then the charging system said that its "
            f"package {row.package_id} was added. The buyer has both: delete_subscriber_package removes the package.\n"
        )
    else:
        subject = f"An eSIM came too late for an order: {row.id}"
        text = (
            f"The order {row.id} of your shop {shop.name} had failed and its refund was begun; then the charging system named an eSIM for "
            "it. The buyer does not get it: the money is going back. Whoever runs the service settles the row with "
            "`reseller issuance settle`, and you can take the eSIM back to stock with rollback_esim_issuance under the order's number.\n"
        )
    mail_operator(connection, deps, row, shop, subject, text)


def mail_refund_failed(connection: Connection, deps: Deps, order: str) -> None:
    """Mails the operator that the refund of `order` does not go back by itself."""
    row, shop = find_order_and_shop(connection, order)
    text = (
        f"{row.id} of your shop {shop.name} was paid and not delivered, and the money could not be sent back automatically. "
        "Look at the payment in your account at the payment processor, and refund it there. To have it tried again, whoever runs the "
        "service uses `reseller storefront settle` with --refund.\n"
    )
    add_order_step(connection, order=row.id, step="refund_failed", now=deps.clock.now())
    mail_operator(connection, deps, row, shop, f"A refund failed: {row.id}", text)


def find_order_and_shop(connection: Connection, order: str) -> tuple[OrderRow, Storefront]:
    row = find_order(connection, order=order)
    shop = None if row is None else storefront_of(connection, storefront=row.storefront)
    if row is None or shop is None:
        raise RuntimeError("an order is told of that is not there, or has no shop")
    return row, shop


def mail_buyer(
    connection: Connection, deps: Deps, row: OrderRow, shop: Storefront, name: str, *, drawn: str | None = None, **more: object
) -> None:
    """The mail `name`, with a link that opens the page of the order by a token of this mail's own; `drawn`: the text of a QR code."""
    if row.email is None:
        return
    number, plan = row.top_up_of or row.id, orjson.loads(row.bought)["name"]
    token = new_order_token(connection, ids=deps.ids, order=number, now=deps.clock.now())
    link = f"{deps.site.base_url}/shop/{shop.slug}/orders/{token}"
    facts = {"shop": shop.name, "plan": plan, "link": link, "number": number, **more}
    mail = queue_order_mail(connection, deps, replace(buyer_letter(texts_in(row.language), name, row.email, facts, shop), drawn=drawn))
    add_order_step(connection, order=row.id, step=f"mail_{name}", now=deps.clock.now(), mail=mail)


def buyer_letter(words: LanguageTexts, name: str, to: str, facts: dict[str, object], shop: Storefront) -> Letter:
    text = words.say(f"mail.{name}_text", **facts).strip()
    support = "" if shop.support_email is None else "\n\n" + words.say("mail.support", address=shop.support_email, number=facts["number"])
    return Letter(to, words.say(f"mail.{name}_subject", **facts), f"{text}{support}\n")


def mail_operator(connection: Connection, deps: Deps, row: OrderRow, shop: Storefront, subject: str, text: str) -> None:
    """To the shop's support address, else to the admins of the organisation."""
    if shop.support_email is not None:
        addresses = [shop.support_email]
    else:
        people = list_people(connection, organisation=row.organisation, now=deps.clock.now(), after=None, most=SEARCHED_MEMBERS_LIMIT)
        addresses = [person.email for person in people if person.active and person.role == "admin" and person.email is not None]
    for address in addresses[:MAILED_ADMINS_LIMIT]:
        queue_order_mail(connection, deps, Letter(address, subject, text))


def queue_order_mail(connection: Connection, deps: Deps, letter: Letter) -> str:
    """Queue `letter`, sealed, for a week; the id of the mail."""
    sealed = seal_letter(letter, ids=deps.ids, keyring=deps.keyring, expires_at=deps.clock.now() + ORDER_MAIL_SECONDS)
    queue_letter(connection, sealed, deps.clock)
    return sealed.id
