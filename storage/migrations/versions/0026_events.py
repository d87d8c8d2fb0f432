"""The log of events, what endpoints have chosen of it, and who is told by mail."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
expands = True

UNPLACED = sa.text("position IS NULL")


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
    op.create_index("event_log_id", "event_log", ["id"], unique=True)
    op.create_index("event_log_unplaced", "event_log", ["arrival"], sqlite_where=UNPLACED, postgresql_where=UNPLACED)
    op.create_index("event_log_position", "event_log", ["organisation", "position"])
    op.create_index("event_log_type", "event_log", ["organisation", "type", "id"])
    op.create_index("event_log_created", "event_log", ["created"])
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


OF_DELIVERIES = (
    ("delivery_of_organisation", ["organisation", "event_id", "id"]),
    ("delivery_of_endpoint", ["endpoint_id", "event_id", "id"]),
    ("delivery_of_state", ["organisation", "state", "event_id", "id"]),
)


def index_deliveries() -> None:
    for name, columns in OF_DELIVERIES:
        op.create_index(name, "delivery", columns)


def upgrade() -> None:
    create_event_log()
    create_selections()
    create_mcp_subscription()
    index_deliveries()


def downgrade() -> None:
    """What happened is told again by nothing: events of the new types go, and endpoints get the three old ones."""
    for name, _ in OF_DELIVERIES:
        op.drop_index(name, "delivery")
    for table in ("mcp_subscription", "endpoint_selection", "line_event_number", "event_log_end", "event_log"):
        op.drop_table(table)
