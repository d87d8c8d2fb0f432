"""The issuance ledger, the stock it compares with, and jobs that one replica at a time does."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

REAL: sa.Double[float] = sa.Double()
TABLES = ("issuance", "stock", "job", "early_sighting", "placed_package")


def upgrade() -> None:
    create_issuance()
    create_stock()
    create_early_sighting()
    create_placed_package()
    op.create_index("claim_state", "claim", ["state", "owner"])
    op.add_column("claim", sa.Column("lease", sa.Text(), nullable=True))
    op.add_column("intent", sa.Column("reported_bytes", sa.BigInteger(), nullable=False, server_default="0"))
    op.create_table(
        "job",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("lease", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("name"),
    )
    op.drop_index("ix_delivery_endpoint_id", "delivery")
    op.create_index("delivery_queue", "delivery", ["state", "endpoint_id", "due_ms"])


def downgrade() -> None:
    op.drop_index("delivery_queue", "delivery")
    op.create_index("ix_delivery_endpoint_id", "delivery", ["endpoint_id"])
    op.drop_index("claim_state", "claim")
    for name in reversed(TABLES):
        op.drop_table(name)
    op.drop_column("intent", "reported_bytes")
    op.drop_column("claim", "lease")


def create_issuance() -> None:
    op.create_table(
        "issuance",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("claim_key", sa.Text(), nullable=True),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("template_id", sa.BigInteger(), nullable=False),
        sa.Column("validity_days", sa.BigInteger(), nullable=True),
        sa.Column("period", sa.Text(), nullable=True),
        sa.Column("intent", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("stock", sa.Text(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=True),
        sa.Column("held", sa.Text(), nullable=True),
        sa.Column("replied", sa.Text(), nullable=True),
        sa.Column("subscriber_id", sa.BigInteger(), nullable=True),
        sa.Column("sim_id", sa.BigInteger(), nullable=True),
        sa.Column("package_id", sa.BigInteger(), nullable=True),
        sa.Column("steps", sa.Text(), nullable=True),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("dispatched", REAL, nullable=False),
        sa.Column("updated", REAL, nullable=False),
        sa.Column("clear_since", REAL, nullable=True),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("lease", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("organisation", "key"),
        sa.UniqueConstraint("held"),
    )
    op.create_index("issuance_due", "issuance", ["state", "due_ms"])
    op.create_index("issuance_account", "issuance", ["account_id", "state"])
    op.create_index("issuance_package", "issuance", ["package_id"])
    op.create_index("issuance_claim", "issuance", ["organisation", "claim_key"])


def create_stock() -> None:
    op.create_table(
        "stock",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=False),
        sa.Column("taken", REAL, nullable=False),
        sa.Column("complete", sa.Integer(), nullable=False),
        sa.Column("iccids", sa.Text(), nullable=False),
        sa.Column("returned", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_stock_taken", "stock", ["taken"])


def create_early_sighting() -> None:
    op.create_table(
        "early_sighting",
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("since", REAL, nullable=False),
        sa.Column("bridge_type", sa.Text(), nullable=False),
        sa.Column("mcc", sa.Text(), nullable=True),
        sa.Column("mnc", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("occurred_at", REAL, nullable=False),
        sa.Column("country", sa.Text(), nullable=True),
        sa.Column("used_bytes", sa.BigInteger(), nullable=True),
        sa.Column("received", REAL, nullable=False),
        sa.PrimaryKeyConstraint("subject", "kind", "since"),
    )
    op.create_index("ix_early_sighting_received", "early_sighting", ["received"])


def create_placed_package() -> None:
    op.create_table(
        "placed_package",
        sa.Column("package_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("placed", REAL, nullable=False),
        sa.PrimaryKeyConstraint("package_id"),
    )
    op.create_index("ix_placed_package_placed", "placed_package", ["placed"])
