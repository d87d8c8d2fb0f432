"""The upstream: notes, network defaults, what tenants created there, where lines were seen, pushes that were taken."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

REAL: sa.Double[float] = sa.Double()
TABLES = ("subscriber_note", "subscriber_notes", "network_default", "upstream_object", "country_entry", "inbound_push")


def upgrade() -> None:
    op.add_column("organisation", sa.Column("simulated", sa.Integer(), nullable=False, server_default="0"))
    create_notes()
    create_network_default()
    create_upstream_object()
    create_country_entry()
    create_inbound_push()


def downgrade() -> None:
    for name in reversed(TABLES):
        op.drop_table(name)
    op.drop_column("organisation", "simulated")


def create_notes() -> None:
    op.create_table(
        "subscriber_note",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("subscriber_note_line", "subscriber_note", ["organisation", "iccid", "id"])
    op.create_table(
        "subscriber_notes",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=False),
        sa.Column("notes", sa.Text(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("organisation", "iccid"),
    )


def create_network_default() -> None:
    op.create_table(
        "network_default",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=False),
        sa.Column("list_id", sa.BigInteger(), nullable=True),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("organisation"),
    )


def create_upstream_object() -> None:
    op.create_table(
        "upstream_object",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("kind", "id"),
    )


def create_country_entry() -> None:
    op.create_table(
        "country_entry",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=False),
        sa.Column("country", sa.Text(), nullable=False),
        sa.Column("mcc", sa.Text(), nullable=False),
        sa.Column("mnc", sa.Text(), nullable=True),
        sa.Column("account_id", sa.BigInteger(), nullable=True),
        sa.Column("occurred_at", REAL, nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("country_entry_line", "country_entry", ["iccid", "occurred_at"])
    op.create_index("country_entry_age", "country_entry", ["occurred_at"])


def create_inbound_push() -> None:
    op.create_table(
        "inbound_push",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("received", REAL, nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("ix_inbound_push_received", "inbound_push", ["received"])
