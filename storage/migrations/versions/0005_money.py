"""Call records, invoices, and what the payment processor tells."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

REAL: sa.Double[float] = sa.Double()
TABLES = (
    "cdr_event",
    "cdr_sum",
    "cdr_month",
    "invoice_period",
    "billing_config",
    "connect_state",
    "invoice_number",
    "invoice",
    "invoice_line",
    "invoice_document",
    "payment_record",
    "payment_event",
    "charge_refunds",
    "payment_attempt",
    "promotion",
    "identity_session",
)


def upgrade() -> None:
    create_cdr_event()
    create_cdr_sum()
    create_cdr_month()
    create_invoice_period()
    create_billing_config()
    create_connect_state()
    create_invoice_number()
    create_invoice()
    create_invoice_line()
    create_invoice_document()
    create_payment_record()
    create_payment_event()
    create_charge_refunds()
    create_payment_attempt()
    create_promotion()
    create_identity_session()


def downgrade() -> None:
    for name in reversed(TABLES):
        op.drop_table(name)


def create_cdr_event() -> None:
    op.create_table(
        "cdr_event",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("event", sa.Text(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=False),
        sa.Column("occurred_at", sa.BigInteger(), nullable=False),
        sa.Column("bytes_up", sa.BigInteger(), nullable=False),
        sa.Column("bytes_down", sa.BigInteger(), nullable=False),
        sa.Column("network", sa.Text(), nullable=True),
        sa.Column("country", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("organisation", "event"),
        sqlite_with_rowid=False,
    )


def create_cdr_sum() -> None:
    op.create_table(
        "cdr_sum",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("month", sa.Integer(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=False),
        sa.Column("bytes_up", sa.BigInteger(), nullable=False),
        sa.Column("bytes_down", sa.BigInteger(), nullable=False),
        sa.Column("bytes_total", sa.BigInteger(), nullable=False),
        sa.Column("events", sa.BigInteger(), nullable=False),
        sa.Column("network", sa.Text(), nullable=True),
        sa.Column("country", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("organisation", "month", "iccid"),
        sqlite_with_rowid=False,
    )
    op.create_index("cdr_sum_largest", "cdr_sum", ["organisation", "month", "bytes_total"])


def create_cdr_month() -> None:
    op.create_table(
        "cdr_month",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("month", sa.Integer(), nullable=False),
        sa.Column("bytes_total", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("organisation", "month"),
        sqlite_with_rowid=False,
    )


def create_invoice_period() -> None:
    op.create_table(
        "invoice_period",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("month", sa.Integer(), nullable=False),
        sa.Column("invoiced", sa.Integer(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("invoice_period_month", "invoice_period", ["organisation", "month"], unique=True)


def create_billing_config() -> None:
    op.create_table(
        "billing_config",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("billing_cycle_day", sa.Integer(), nullable=False),
        sa.Column("price_per_gb_cents", sa.BigInteger(), nullable=False),
        sa.Column("invoice_prefix", sa.Text(), nullable=False),
        sa.Column("connect_account", sa.Text(), nullable=True),
        sa.Column("connect_kind", sa.Text(), nullable=True),
        sa.Column("connect_status", sa.Text(), nullable=False),
        sa.Column("connect_as_of", REAL, nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("organisation"),
        sa.UniqueConstraint("connect_account"),
    )


def create_connect_state() -> None:
    op.create_table(
        "connect_state",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("expires_at", REAL, nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("ix_connect_state_expires_at", "connect_state", ["expires_at"])


def create_invoice_number() -> None:
    op.create_table(
        "invoice_number",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("year", sa.Integer(), nullable=False),
        sa.Column("last", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("organisation", "year"),
    )


def create_invoice() -> None:
    op.create_table(
        "invoice",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("number", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("sending", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("discarded", sa.Integer(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("price_per_gb_cents", sa.BigInteger(), nullable=False),
        sa.Column("platform_fee_bps", sa.Integer(), nullable=False),
        sa.Column("subtotal_cents", sa.BigInteger(), nullable=False),
        sa.Column("tax_cents", sa.BigInteger(), nullable=False),
        sa.Column("platform_fee_cents", sa.BigInteger(), nullable=False),
        sa.Column("total_cents", sa.BigInteger(), nullable=False),
        sa.Column("lines", sa.Integer(), nullable=False),
        sa.Column("connect_account", sa.Text(), nullable=True),
        sa.Column("processor_invoice", sa.Text(), nullable=True),
        sa.Column("pay_url", sa.Text(), nullable=True),
        sa.Column("recipient_name", sa.Text(), nullable=True),
        sa.Column("recipient_email", sa.Text(), nullable=True),
        sa.Column("notes", sa.Text(), nullable=True),
        sa.Column("document", sa.Integer(), nullable=False),
        sa.Column("issued_at", sa.BigInteger(), nullable=True),
        sa.Column("due_at", sa.BigInteger(), nullable=True),
        sa.Column("paid_at", sa.BigInteger(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("processor_invoice"),
    )
    op.create_index("invoice_organisation", "invoice", ["organisation", "id"], unique=True)
    op.create_index("ix_invoice_period", "invoice", ["period"])


def create_invoice_line() -> None:
    op.create_table(
        "invoice_line",
        sa.Column("invoice", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=False),
        sa.Column("bytes_up", sa.BigInteger(), nullable=False),
        sa.Column("bytes_down", sa.BigInteger(), nullable=False),
        sa.Column("amount_cents", sa.BigInteger(), nullable=False),
        sa.Column("network", sa.Text(), nullable=True),
        sa.Column("country", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("invoice", "position"),
    )


def create_invoice_document() -> None:
    op.create_table(
        "invoice_document",
        sa.Column("invoice", sa.Text(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("invoice"),
    )


def create_payment_record() -> None:
    op.create_table(
        "payment_record",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("charge", sa.Text(), nullable=True),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("as_of", REAL, nullable=False),
        sa.Column("stage", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "kind", "id"),
    )
    op.create_index("payment_record_charge", "payment_record", ["account", "kind", "charge"])
    op.create_index("payment_record_list", "payment_record", ["organisation", "kind", "created", "id"])


def create_payment_event() -> None:
    op.create_table(
        "payment_event",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=True),
        sa.Column("received", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_payment_event_received", "payment_event", ["received"])


def create_charge_refunds() -> None:
    op.create_table(
        "charge_refunds",
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("charge", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("reserved", sa.BigInteger(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "charge"),
    )


def create_payment_attempt() -> None:
    op.create_table(
        "payment_attempt",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("account", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("charge", sa.Text(), nullable=True),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("processor_key", sa.Text(), nullable=False),
        sa.Column("claim_key", sa.Text(), nullable=True),
        sa.Column("made", sa.Text(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("payment_attempt_charge", "payment_attempt", ["account", "charge"])
    op.create_index("payment_attempt_claim", "payment_attempt", ["organisation", "kind", "claim_key"])
    op.create_index("payment_attempt_state", "payment_attempt", ["account", "state"])


def create_promotion() -> None:
    op.create_table(
        "promotion",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("percent_off_bps", sa.Integer(), nullable=True),
        sa.Column("amount_off", sa.BigInteger(), nullable=True),
        sa.Column("currency", sa.Text(), nullable=True),
        sa.Column("max_redemptions", sa.Integer(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("active", sa.Integer(), nullable=False),
        sa.Column("processor_promotion", sa.Text(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("promotion_code", "promotion", ["organisation", "code"], unique=True)


def create_identity_session() -> None:
    op.create_table(
        "identity_session",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("person", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("return_url", sa.Text(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_identity_session_organisation", "identity_session", ["organisation"])
