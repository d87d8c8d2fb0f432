"""What long queues are searched by; and what is known of an issuance that is not settled: for how long nothing was seen, and why."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

OF_DELIVERIES = (
    ("delivery_waiting", ["endpoint_id", "due_ms"], "state + 0 = 0 AND lease IS NULL"),
    ("delivery_failed", ["endpoint_id", "due_ms"], "state = 2"),
    ("delivery_leased", ["due_ms", "endpoint_id", "organisation"], "lease IS NOT NULL"),
)


def upgrade() -> None:
    op.drop_index("delivery_queue", "delivery")
    for name, columns, rows in OF_DELIVERIES:
        op.create_index(name, "delivery", columns, sqlite_where=sa.text(rows), postgresql_where=sa.text(rows))
    op.add_column("issuance", sa.Column("clear_seconds", sa.Double(), nullable=True))
    op.add_column("issuance", sa.Column("obstacle", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("issuance", "obstacle")
    op.drop_column("issuance", "clear_seconds")
    for name, _, _ in OF_DELIVERIES:
        op.drop_index(name, "delivery")
    op.create_index("delivery_queue", "delivery", ["state", "endpoint_id", "due_ms"])
