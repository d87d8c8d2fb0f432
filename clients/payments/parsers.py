"""The processor's objects, as decoded JSON, read as our records."""

import re
from typing import Literal, cast

from clients.payments.fields import (
    ProcessorJson,
    bool_field,
    count_field,
    count_field_or_none,
    currency_field,
    currency_field_or_none,
    first_of,
    id_field,
    id_field_or_none,
    inner_object,
    known_word,
    metadata_field,
    object_rows,
    page_field,
    page_field_or_none,
    term_field,
    term_field_or_none,
    text_field,
    text_field_or_none,
    whole_field,
)
from clients.payments.records import (
    AccountKind,
    ApplicationFee,
    Balance,
    Charge,
    CheckoutSession,
    ConnectedAccount,
    Dispute,
    HostedPage,
    Money,
    Payout,
    PayoutInterval,
    PayoutTiming,
    ProcessorInvoice,
    PromotionCode,
    Refund,
    Review,
    ValueList,
    ValueListItem,
    Weekday,
)

ACCOUNT_KINDS: tuple[AccountKind, ...] = ("express", "standard", "custom", "none")
ACCOUNT_KIND_BY_DASHBOARD: dict[str | None, AccountKind] = {"express": "express", "full": "standard", "none": "custom"}
PAYOUT_INTERVALS: tuple[PayoutInterval, ...] = ("manual", "daily", "weekly", "monthly")
REQUIREMENT_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
REQUIREMENTS_LIMIT = 200
WEEKDAYS: tuple[Weekday, ...] = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def parse_account(found: ProcessorJson) -> ConnectedAccount:
    """An account; one that its owner has not finished says no to everything."""
    return ConnectedAccount(
        id=id_field(found),
        kind=parse_account_kind(found),
        charges_enabled=bool_field(found, "charges_enabled"),
        payouts_enabled=bool_field(found, "payouts_enabled"),
        details_submitted=bool_field(found, "details_submitted"),
        default_currency=currency_field_or_none(found, "default_currency"),
        currently_due=parse_currently_due(inner_object(found, "requirements")),
        metadata=metadata_field(found),
    )


def parse_account_kind(found: ProcessorJson) -> AccountKind:
    """Accounts made by what they may, not by a type, have type `none`; their dashboard then says which they are."""
    kind: AccountKind = known_word(text_field_or_none(found, "type") or "none", ACCOUNT_KINDS, "type")
    if kind != "none":
        return kind
    return ACCOUNT_KIND_BY_DASHBOARD.get(
        text_field_or_none(inner_object(inner_object(found, "controller"), "stripe_dashboard"), "type"), kind
    )


def parse_currently_due(requirements: ProcessorJson) -> tuple[str, ...]:
    """What is still asked for; what is none of the wire's names is left out."""
    due = requirements.get("currently_due")
    found = cast("list[object]", due) if isinstance(due, list) else []
    return tuple(one for one in found if isinstance(one, str) and REQUIREMENT_NAME.fullmatch(one))[:REQUIREMENTS_LIMIT]


def parse_hosted_page(found: ProcessorJson) -> HostedPage:
    """A page for one person."""
    return HostedPage(page_field(found, "url"), count_field_or_none(found, "expires_at"))


def parse_payout_schedule(found: ProcessorJson) -> PayoutTiming:
    """Of a weekly or monthly schedule with several days the first one is told."""
    payments = inner_object(found, "payments")
    schedule = inner_object(inner_object(payments, "payouts"), "schedule")
    # Choice: an account that has no schedule pays nothing out by itself.
    interval: PayoutInterval = known_word(text_field_or_none(schedule, "interval") or "manual", PAYOUT_INTERVALS, "interval")
    weekday, month_day = first_of(schedule, "weekly_payout_days"), first_of(schedule, "monthly_payout_days")
    return PayoutTiming(
        interval=interval,
        weekday=parse_weekday(weekday) if isinstance(weekday, str) and interval == "weekly" else None,
        month_day=month_day if type(month_day) is int and 1 <= month_day <= 31 and interval == "monthly" else None,
        delay_days=count_field_or_none(inner_object(payments, "settlement_timing"), "delay_days"),
    )


def parse_weekday(found: str) -> Weekday:
    """A day of the week."""
    return known_word(found, WEEKDAYS, "weekly_payout_days")


def parse_balance(found: ProcessorJson) -> Balance:
    """What can be paid out now, and what is under way."""
    return Balance(bool_field(found, "livemode"), parse_amounts(found, "available"), parse_amounts(found, "pending"))


def parse_amounts(found: ProcessorJson, name: str) -> tuple[Money, ...]:
    """By currency."""
    return tuple(Money(whole_field(row, "amount"), currency_field(row)) for row in object_rows(found, name))


CHARGE_STATUSES: tuple[Literal["pending", "succeeded", "failed"], ...] = ("pending", "succeeded", "failed")


def parse_charge(found: ProcessorJson) -> Charge:
    """A payment that was tried. The invoice it pays is no longer told on it."""
    return Charge(
        id=id_field(found),
        amount=count_field(found, "amount"),
        amount_refunded=count_field(found, "amount_refunded"),
        currency=currency_field(found),
        status=known_word(text_field(found, "status"), CHARGE_STATUSES, "status"),
        refunded=bool_field(found, "refunded"),
        disputed=bool_field(found, "disputed"),
        created=count_field(found, "created"),
        payment_intent=id_field_or_none(found, "payment_intent"),
        application_fee=id_field_or_none(found, "application_fee"),
        failure_code=term_field_or_none(found, "failure_code"),
        metadata=metadata_field(found),
    )


CHECKOUT_STATUSES: tuple[Literal["open", "complete", "expired"], ...] = ("open", "complete", "expired")
CHECKOUT_PAYMENT_STATUSES: tuple[Literal["paid", "unpaid", "no_payment_required"], ...] = ("paid", "unpaid", "no_payment_required")


def parse_checkout(found: ProcessorJson) -> CheckoutSession:
    """A page on which a buyer pays. Accounts have pages of their own as well, and one that sells nothing has no amount."""
    return CheckoutSession(
        id=id_field(found),
        status=known_word(text_field_or_none(found, "status") or "open", CHECKOUT_STATUSES, "status"),
        payment_status=known_word(text_field(found, "payment_status"), CHECKOUT_PAYMENT_STATUSES, "payment_status"),
        amount_total=count_field_or_none(found, "amount_total") or 0,
        currency=currency_field_or_none(found, "currency") or "",
        payment_intent=id_field_or_none(found, "payment_intent"),
        expires_at=count_field(found, "expires_at"),
        url=page_field_or_none(found, "url"),
        email=text_field_or_none(inner_object(found, "customer_details"), "email") or text_field_or_none(found, "customer_email"),
        metadata=metadata_field(found),
    )


def parse_dispute(found: ProcessorJson) -> Dispute:
    """A payer's bank asks for the money back."""
    details = inner_object(found, "evidence_details")
    return Dispute(
        id=id_field(found),
        amount=count_field(found, "amount"),
        currency=currency_field(found),
        status=term_field(found, "status"),
        reason=term_field(found, "reason"),
        charge=id_field(found, "charge"),
        payment_intent=id_field_or_none(found, "payment_intent"),
        evidence_due_by=count_field_or_none(details, "due_by"),
        evidence_submissions=count_field_or_none(details, "submission_count") or 0,
        created=count_field(found, "created"),
    )


def parse_application_fee(found: ProcessorJson) -> ApplicationFee:
    """What the service kept of a connected account's charge."""
    return ApplicationFee(
        id=id_field(found),
        account=id_field(found, "account"),
        amount=count_field(found, "amount"),
        amount_refunded=count_field(found, "amount_refunded"),
        currency=currency_field(found),
        charge=id_field(found, "charge"),
        created=count_field(found, "created"),
    )


InvoiceStatus = Literal["draft", "open", "paid", "void", "uncollectible"]
INVOICE_STATUSES: tuple[InvoiceStatus, ...] = ("draft", "open", "paid", "void", "uncollectible")


def parse_invoice(found: ProcessorJson) -> ProcessorInvoice:
    """An invoice; which payments pay it is no longer told on it."""
    return ProcessorInvoice(
        id=id_field(found),
        status=known_word(text_field_or_none(found, "status") or "draft", INVOICE_STATUSES, "status"),
        total=whole_field(found, "total"),
        amount_paid=whole_field(found, "amount_paid"),
        currency=currency_field(found),
        pay_url=page_field_or_none(found, "hosted_invoice_url"),
        paid_at=count_field_or_none(inner_object(found, "status_transitions"), "paid_at"),
        metadata=metadata_field(found),
    )


PayoutStatus = Literal["pending", "in_transit", "paid", "failed", "canceled"]
PAYOUT_STATUSES: tuple[PayoutStatus, ...] = ("pending", "in_transit", "paid", "failed", "canceled")


def parse_payout(found: ProcessorJson) -> Payout:
    """Money sent to a bank."""
    return Payout(
        id=id_field(found),
        amount=whole_field(found, "amount"),
        currency=currency_field(found),
        status=known_word(text_field(found, "status"), PAYOUT_STATUSES, "status"),
        automatic=bool_field(found, "automatic"),
        arrival_date=count_field(found, "arrival_date"),
        created=count_field(found, "created"),
        failure_code=term_field_or_none(found, "failure_code"),
        metadata=metadata_field(found),
    )


def parse_promotion(found: ProcessorJson) -> PromotionCode:
    """A code and the coupon behind it, which the wire has one level deeper than it once did."""
    return PromotionCode(
        id=id_field(found),
        coupon=id_field(inner_object(found, "promotion"), "coupon"),
        code=text_field(found, "code"),
        active=bool_field(found, "active"),
    )


RefundStatus = Literal["pending", "requires_action", "succeeded", "failed", "canceled"]
REFUND_STATUSES: tuple[RefundStatus, ...] = ("pending", "requires_action", "succeeded", "failed", "canceled")


def parse_refund(found: ProcessorJson) -> Refund:
    """Money given back; one without a status is not known to have arrived."""
    return Refund(
        id=id_field(found),
        amount=count_field(found, "amount"),
        currency=currency_field(found),
        status=known_word(text_field_or_none(found, "status") or "pending", REFUND_STATUSES, "status"),
        charge=id_field_or_none(found, "charge"),
        payment_intent=id_field_or_none(found, "payment_intent"),
        reason=term_field_or_none(found, "reason"),
        created=count_field(found, "created"),
        failure_reason=term_field_or_none(found, "failure_reason"),
        metadata=metadata_field(found),
    )


def parse_review(found: ProcessorJson) -> Review:
    """A charge that waits for a person's look."""
    return Review(
        id=id_field(found),
        open=bool_field(found, "open"),
        reason=term_field(found, "reason"),
        charge=id_field_or_none(found, "charge"),
        payment_intent=id_field_or_none(found, "payment_intent"),
        created=count_field(found, "created"),
    )


def parse_value_list(found: ProcessorJson) -> ValueList:
    """A list that the fraud rules name."""
    return ValueList(
        id=id_field(found),
        alias=term_field(found, "alias"),
        name=text_field(found, "name"),
        item_type=term_field(found, "item_type"),
        created=count_field(found, "created"),
    )


def parse_value_list_item(found: ProcessorJson) -> ValueListItem:
    """One value of it."""
    return ValueListItem(id_field(found), id_field(found, "value_list"), text_field(found, "value"), count_field(found, "created"))
