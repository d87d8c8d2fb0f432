"""Tables of money: call records, invoices, and what the payment processor tells. Part of the schema, as those of schema.py.

Amounts are whole minor units; a month is the number YYYYMM in UTC.
"""

import sqlalchemy as sa
from sqlmodel import Field

from storage.named import Named

# Choice: SQLite keeps these rows in the order of their keys (WITHOUT ROWID). The file is a third smaller and a month is read in one piece;
# events that come in the order of their ids are stored a tenth faster, those that come in none a tenth slower.
CLUSTERED = {"sqlite_with_rowid": False}


class CdrEventTable(Named, table=True):
    """A call detail record (CDR) as its sender told it, once per organisation and event id."""

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    event: str = Field(primary_key=True, sa_type=sa.Text)
    iccid: str = Field(sa_type=sa.Text)
    occurred_at: int = Field(sa_type=sa.BigInteger)
    bytes_up: int = Field(sa_type=sa.BigInteger)
    bytes_down: int = Field(sa_type=sa.BigInteger)
    network: str | None = Field(default=None, sa_type=sa.Text)
    country: str | None = Field(default=None, sa_type=sa.Text)
    __table_args__ = CLUSTERED


class CdrSumTable(Named, table=True):
    """All records of one SIM in one month, summed exactly in the transaction that stored them.

    `bytes_total` is both directions, at most 2^53-1. `network` and `country` are null unless every record has them and all agree.
    """

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    month: int = Field(primary_key=True)
    iccid: str = Field(primary_key=True, sa_type=sa.Text)
    bytes_up: int = Field(sa_type=sa.BigInteger)
    bytes_down: int = Field(sa_type=sa.BigInteger)
    bytes_total: int = Field(sa_type=sa.BigInteger)
    events: int = Field(sa_type=sa.BigInteger)
    network: str | None = Field(default=None, sa_type=sa.Text)
    country: str | None = Field(default=None, sa_type=sa.Text)
    __table_args__ = (sa.Index("cdr_sum_largest", "organisation", "month", "bytes_total"), CLUSTERED)


class CdrMonthTable(Named, table=True):
    """All records of an organisation in one month, both directions, at most 2^63-1 bytes: nobody adds up its SIMs to read it."""

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    month: int = Field(primary_key=True)
    bytes_total: int = Field(sa_type=sa.BigInteger)
    __table_args__ = CLUSTERED


class CallRecordDigestTable(Named, table=True):
    """What is left of a call record that is not kept any more: 20 bytes of a digest of organisation and id. Never swept."""

    digest: bytes = Field(primary_key=True, sa_type=sa.LargeBinary)
    __table_args__ = CLUSTERED


class CallRecordPassTable(Named, table=True):
    """How far the search for old call records came, one row. `running`: 0 once it reached the end; `begun`: Unix seconds.

    It goes on behind the record with this key on SQLite, and at this block of the table on PostgreSQL.
    """

    id: int = Field(primary_key=True, sa_type=sa.Integer)
    begun: int = Field(sa_type=sa.BigInteger)
    running: int = Field(sa_type=sa.Integer)
    organisation: str = Field(sa_type=sa.Text)
    event: str = Field(sa_type=sa.Text)
    block: int = Field(sa_type=sa.BigInteger)


class InvoicePeriodTable(Named, table=True):
    """A month of an organisation that has records. `invoiced`: an invoice was made for it. Open or closed is the clock's to say."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    month: int
    invoiced: int = 0
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("invoice_period_month", "organisation", "month", unique=True),)


class BillingConfigTable(Named, table=True):
    """How an organisation bills, and its account at the payment processor.

    `connect_status`: not_connected, pending or active; `connect_kind`: express or standard. An account belongs to one organisation.
    `connect_as_of`: the moment of the processor's word that the status comes from; what is older changes nothing.
    `connect_was_active` is 1 once the account was active, whatever its status is now.
    """

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    currency: str = Field(sa_type=sa.Text)
    billing_cycle_day: int
    price_per_gb_cents: int = Field(sa_type=sa.BigInteger)
    invoice_prefix: str = Field(sa_type=sa.Text)
    connect_account: str | None = Field(default=None, unique=True, sa_type=sa.Text)
    connect_kind: str | None = Field(default=None, sa_type=sa.Text)
    connect_status: str = Field(sa_type=sa.Text)
    connect_as_of: float = Field(sa_type=sa.Double)
    connect_was_active: int = 0
    updated: int = Field(sa_type=sa.BigInteger)


class ConnectStateTable(Named, table=True):
    """An OAuth consent under way: the SHA-256 of its `state`, single use."""

    digest: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    person: str = Field(sa_type=sa.Text)
    expires_at: float = Field(sa_type=sa.Double, index=True)


class InvoiceNumberTable(Named, table=True):
    """The last number an organisation gave in a year; taken in the transaction of the invoice, so that none is left out."""

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    year: int = Field(primary_key=True)
    last: int


class InvoiceTable(Named, table=True):
    """An invoice. Its figures never change. `sending`: it is being handed to the processor, or nobody knows whether it was.

    `processor_invoice` is the processor's id for it, in `connect_account`: known before it is sent there. `pay_url` is where its
    recipient pays. `revision` counts what changed of a draft, so that what is sent is what was read; `discarded` the tries
    at the processor that were given up for good. `selected` is 1 where it bills some of the month's SIMs: what such an invoice bills
    is on no other one.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    period: str = Field(index=True, sa_type=sa.Text)
    number: str = Field(sa_type=sa.Text)
    status: str = Field(sa_type=sa.Text)
    sending: int = 0
    revision: int = 0
    discarded: int = 0
    currency: str = Field(sa_type=sa.Text)
    price_per_gb_cents: int = Field(sa_type=sa.BigInteger)
    platform_fee_bps: int
    subtotal_cents: int = Field(sa_type=sa.BigInteger)
    tax_cents: int = Field(sa_type=sa.BigInteger)
    platform_fee_cents: int = Field(sa_type=sa.BigInteger)
    total_cents: int = Field(sa_type=sa.BigInteger)
    lines: int
    selected: int = 0
    connect_account: str | None = Field(default=None, sa_type=sa.Text)
    processor_invoice: str | None = Field(default=None, unique=True, sa_type=sa.Text)
    pay_url: str | None = Field(default=None, sa_type=sa.Text)
    recipient_name: str | None = Field(default=None, sa_type=sa.Text)
    recipient_email: str | None = Field(default=None, sa_type=sa.Text)
    notes: str | None = Field(default=None, sa_type=sa.Text)
    document: int = 0
    issued_at: int | None = Field(default=None, sa_type=sa.BigInteger)
    due_at: int | None = Field(default=None, sa_type=sa.BigInteger)
    paid_at: int | None = Field(default=None, sa_type=sa.BigInteger)
    created: int = Field(sa_type=sa.BigInteger)
    updated: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("invoice_organisation", "organisation", "id", unique=True),)


class InvoiceLineTable(Named, table=True):
    """One SIM's usage on an invoice, copied when the invoice was made. `position` counts from 1 in the order of the ICCIDs."""

    invoice: str = Field(primary_key=True, sa_type=sa.Text)
    position: int = Field(primary_key=True)
    id: str = Field(sa_type=sa.Text)
    iccid: str = Field(sa_type=sa.Text)
    bytes_up: int = Field(sa_type=sa.BigInteger)
    bytes_down: int = Field(sa_type=sa.BigInteger)
    amount_cents: int = Field(sa_type=sa.BigInteger)
    network: str | None = Field(default=None, sa_type=sa.Text)
    country: str | None = Field(default=None, sa_type=sa.Text)


class InvoiceDocumentTable(Named, table=True):
    """The PDF of an invoice, made once when it left draft."""

    invoice: str = Field(primary_key=True, sa_type=sa.Text)
    content: bytes = Field(sa_type=sa.LargeBinary)
    sha256: str = Field(sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)


class PaymentRecordTable(Named, table=True):
    """What the processor told of a charge, refund, dispute, payout or application fee: `kind` and the reduced object as JSON.

    (`as_of`, `stage`) is how new that word is: the second of the event, and how far along the object was. An older word changes nothing.
    """

    account: str = Field(primary_key=True, sa_type=sa.Text)
    kind: str = Field(primary_key=True, sa_type=sa.Text)
    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    charge: str | None = Field(default=None, sa_type=sa.Text)
    body: str = Field(sa_type=sa.Text)
    as_of: float = Field(sa_type=sa.Double)
    stage: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (
        sa.Index("payment_record_list", "organisation", "kind", "created", "id"),
        sa.Index("payment_record_charge", "account", "kind", "charge"),
    )


class PaymentEventTable(Named, table=True):
    """An event of the processor's that was taken: each has its effect once."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    type: str = Field(sa_type=sa.Text)
    account: str | None = Field(default=None, sa_type=sa.Text)
    received: int = Field(sa_type=sa.BigInteger, index=True)


class ChargeRefundsTable(Named, table=True):
    """What of a charge may still be refunded through us: taken before the processor is asked, so that no two refunds take the same cent.

    `reserved` is what was taken and not given back, in all; never more than `amount`, which is the charge's.
    """

    account: str = Field(primary_key=True, sa_type=sa.Text)
    charge: str = Field(primary_key=True, sa_type=sa.Text)
    amount: int = Field(sa_type=sa.BigInteger)
    reserved: int = Field(sa_type=sa.BigInteger)
    updated: int = Field(sa_type=sa.BigInteger)


class PaymentAttemptTable(Named, table=True):
    """A refund or a payout (`kind`) that was asked for through us. `state`: sending, done, failed or unknown.

    `processor_key`: the processor's key of it; `claim_key`: the caller's own. `made`: the processor's id of what came of it.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    account: str = Field(sa_type=sa.Text)
    kind: str = Field(sa_type=sa.Text)
    charge: str | None = Field(default=None, sa_type=sa.Text)
    amount: int = Field(sa_type=sa.BigInteger)
    currency: str = Field(sa_type=sa.Text)
    state: str = Field(sa_type=sa.Text)
    processor_key: str = Field(sa_type=sa.Text)
    claim_key: str | None = Field(default=None, sa_type=sa.Text)
    made: str | None = Field(default=None, sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    updated: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (
        sa.Index("payment_attempt_claim", "organisation", "kind", "claim_key"),
        sa.Index("payment_attempt_charge", "account", "charge"),
        sa.Index("payment_attempt_state", "account", "state"),
    )


class PromotionTable(Named, table=True):
    """A code that buyers may use. `processor_promotion` is the processor's id for it, where the organisation has an account there."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    code: str = Field(sa_type=sa.Text)
    percent_off_bps: int | None = None
    amount_off: int | None = Field(default=None, sa_type=sa.BigInteger)
    currency: str | None = Field(default=None, sa_type=sa.Text)
    max_redemptions: int | None = None
    expires_at: int | None = Field(default=None, sa_type=sa.BigInteger)
    active: int = 1
    processor_promotion: str | None = Field(default=None, sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("promotion_code", "organisation", "code", unique=True),)


class IdentitySessionTable(Named, table=True):
    """A verification of who runs an organisation: requires_input, processing, verified or canceled."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(index=True, sa_type=sa.Text)
    person: str = Field(sa_type=sa.Text)
    kind: str = Field(sa_type=sa.Text)
    status: str = Field(sa_type=sa.Text)
    reason: str | None = Field(default=None, sa_type=sa.Text)
    return_url: str | None = Field(default=None, sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    updated: int = Field(sa_type=sa.BigInteger)
