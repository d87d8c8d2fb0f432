"""The log of events, what endpoints have chosen of it, and who is told by mail; steps of orders, and calls by their key."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
expands = True

REAL: sa.Double[float] = sa.Double()
UNPLACED = sa.text("position IS NULL")
IS_PLACED = sa.text("position IS NOT NULL")
UNTOLD = sa.text("ended_ms IS NULL")


def create_event_log() -> None:
    op.create_table(
        "event_log",
        sa.Column("arrival", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "organisation", "type", "data")),
        sa.Column("livemode", sa.Integer(), nullable=False),
        sa.Column("line", sa.Text(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=True),
        sa.Column("line_number", sa.BigInteger(), nullable=True),
        sa.Column("retry_minute", sa.BigInteger(), nullable=True),
        sa.Column("retry_count", sa.Integer(), nullable=True),
    )
    op.create_index("event_log_id", "event_log", ["id"], unique=True, sqlite_where=IS_PLACED, postgresql_where=IS_PLACED)
    op.create_index("event_log_position", "event_log", ["organisation", "position"], sqlite_where=IS_PLACED, postgresql_where=IS_PLACED)
    op.create_index("event_log_type", "event_log", ["organisation", "type", "id"], sqlite_where=IS_PLACED, postgresql_where=IS_PLACED)
    if op.get_bind().dialect.name == "postgresql":
        op.create_index("event_log_unplaced", "event_log", ["arrival"], postgresql_where=UNPLACED)
    op.create_table(
        "event_log_end",
        sa.Column("organisation", sa.Text(), primary_key=True),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("swept", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "line_event_number",
        sa.Column("organisation", sa.Text(), primary_key=True),
        sa.Column("line", sa.Text(), primary_key=True),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )


def create_selections() -> None:
    op.create_table(
        "endpoint_selection",
        *(sa.Column(name, sa.Text(), primary_key=name == "endpoint") for name in ("endpoint",)),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("organisation", "description", "kind", "principal", "credential")),
        *(sa.Column(name, sa.Text(), nullable=True) for name in ("types", "tags")),
        sa.Column("changed", sa.BigInteger(), nullable=False),
        sa.Column("test_minute", sa.BigInteger(), nullable=False),
        sa.Column("test_count", sa.Integer(), nullable=False),
    )
    op.create_index("endpoint_selection_organisation", "endpoint_selection", ["organisation"])


def create_mcp_subscription() -> None:
    op.create_table(
        "mcp_subscription",
        *(sa.Column(name, sa.Text(), primary_key=name == "endpoint") for name in ("endpoint",)),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("id", "organisation", "principal", "url")),
        sa.Column("expires", sa.BigInteger(), nullable=False),
    )
    op.create_index("mcp_subscription_id", "mcp_subscription", ["organisation", "id"], unique=True)
    op.create_index("mcp_subscription_expires", "mcp_subscription", ["expires"])


def create_order_steps() -> None:
    op.create_table(
        "order_step",
        sa.Column("storefront_order", sa.Text(), primary_key=True),
        sa.Column("at", REAL, primary_key=True),
        *(sa.Column(name, sa.Text(), primary_key=True) for name in ("step", "mail")),
        sa.Column("sent_at", REAL, nullable=True),
        sqlite_with_rowid=False,
    )
    op.create_index("order_step_mail", "order_step", ["mail"])


OF_KEYS = (("audit_key", "audit", ["organisation", "key_id", "at", "id"]), ("audit_read_key", "audit_read", ["organisation", "key", "id"]))


def index_keys() -> None:
    """The last calls with a key are looked up in the audit log."""
    for name, table, columns in OF_KEYS:
        op.create_index(name, table, columns)


SENT = sa.text("status = 'sent'")


def create_overdue_invoices() -> None:
    op.create_table(
        "overdue_invoice",
        sa.Column("invoice", sa.Text(), primary_key=True),
        sa.Column("told", sa.BigInteger(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("invoice_due", "invoice", ["due_at"], sqlite_where=SENT, postgresql_where=SENT)


def create_line_news() -> None:
    """What must be kept of fleets and their lines so that each change is told once."""
    op.create_table(
        "fleet_baseline",
        sa.Column("fleet", sa.BigInteger(), primary_key=True, autoincrement=False),
        *(sa.Column(name, REAL, nullable=False) for name in ("began", "since")),
    )
    of_line = ("fleet", "subscriber_id")
    op.create_table(
        "fleet_line_baseline",
        *(sa.Column(name, sa.BigInteger(), primary_key=True, autoincrement=False) for name in of_line),
        sa.Column("read", REAL, nullable=False),
        sa.Column("complete", sa.Integer(), nullable=False),
        sa.Column("ending", sa.Text(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "fleet_country",
        *(sa.Column(name, sa.BigInteger(), primary_key=True, autoincrement=False) for name in of_line),
        sa.Column("country", sa.Text(), nullable=False),
        sa.Column("at", REAL, nullable=False),
        sa.Column("pushed", sa.Integer(), nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "fleet_crossing",
        *(sa.Column(name, sa.BigInteger(), primary_key=True, autoincrement=False) for name in (*of_line, "package")),
        sa.Column("percent", sa.Integer(), primary_key=True, autoincrement=False),
        sqlite_with_rowid=False,
    )


def create_alerts() -> None:
    op.create_table(
        "alert",
        *(sa.Column(name, sa.Text(), primary_key=True) for name in ("organisation", "kind", "subject")),
        *(sa.Column(name, REAL, nullable=False) for name in ("opened", "level", "daily", "topped")),
        sqlite_with_rowid=False,
    )
    op.create_index("alert_opened", "alert", ["kind", "opened"])
    op.create_table(
        "alert_day",
        *(sa.Column(name, sa.Text(), primary_key=True) for name in ("organisation", "kind", "subject")),
        sa.Column("day", sa.Integer(), primary_key=True, autoincrement=False),
        *(sa.Column(name, REAL, nullable=False) for name in ("began", "ended", "level", "used")),
        sqlite_with_rowid=False,
    )
    op.create_index("alert_day_ended", "alert_day", ["ended"])
    op.create_table(
        "alert_setting",
        sa.Column("organisation", sa.Text(), primary_key=True),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("balance", "stock", "sync", "quota", "upstream")),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("days_to_open", "days_to_close", "quota_percent")),
    )


def create_mail_subscriptions() -> None:
    op.create_table(
        "mail_subscription",
        *(sa.Column(name, sa.Text(), primary_key=True) for name in ("organisation", "person")),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("kinds", "timezone", "language")),
        sa.Column("hour", sa.Integer(), nullable=False),
        sa.Column("changed", sa.BigInteger(), nullable=False),
    )
    op.create_table(
        "mail_notice",
        *(sa.Column(name, sa.Text(), primary_key=True) for name in ("person", "event")),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("organisation", "type", "how", "mail")),
        sa.Column("day", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("created", "due_ms")),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
    )
    op.create_index("mail_notice_due", "mail_notice", ["due_ms"], sqlite_where=UNTOLD, postgresql_where=UNTOLD)
    of_reader = ["organisation", "person", "due_ms"]
    op.create_index("mail_notice_waiting", "mail_notice", of_reader, sqlite_where=UNTOLD, postgresql_where=UNTOLD)
    op.create_index("mail_notice_digest", "mail_notice", ["organisation", "person", "day"])
    op.create_index("mail_notice_ended", "mail_notice", ["ended_ms"])
    op.create_table(
        "schedule_mail",
        sa.Column("schedule", sa.Text(), primary_key=True),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("organisation", "person", "form", "share")),
    )


TABLES = (
    "event_log",
    "event_log_end",
    "line_event_number",
    "endpoint_selection",
    "mcp_subscription",
    "overdue_invoice",
    "fleet_baseline",
    "fleet_line_baseline",
    "fleet_country",
    "fleet_crossing",
    "alert",
    "alert_day",
    "alert_setting",
    "mail_subscription",
    "mail_notice",
    "schedule_mail",
    "order_step",
)


def upgrade() -> None:
    create_event_log()
    create_selections()
    create_mcp_subscription()
    # What was queued before has no type: its events say it.
    op.add_column("delivery", sa.Column("type", sa.Text(), nullable=True))
    index_keys()
    create_overdue_invoices()
    create_line_news()
    create_alerts()
    create_mail_subscriptions()
    create_order_steps()


def downgrade() -> None:
    """What happened is told again by nothing: events of the new types go, and endpoints get the three old ones."""
    op.drop_column("delivery", "type")
    for name, table, _ in OF_KEYS:
        op.drop_index(name, table)
    op.drop_index("invoice_due", "invoice")
    for table in TABLES:
        op.drop_table(table)
