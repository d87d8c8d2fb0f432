"""Lists of deliveries, whose indexes an acknowledgement leaves as they are, and the types of events beside their positions."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"
expands = True

OF_DELIVERIES = (
    ("delivery_of_organisation", ["organisation", "event_id", "id"], None),
    ("delivery_of_endpoint", ["endpoint_id", "event_id", "id"], None),
    ("delivery_of_type", ["organisation", "type", "event_id", "id"], None),
    ("delivery_of_endpoint_type", ["endpoint_id", "type", "event_id", "id"], None),
    ("delivery_undelivered", ["organisation", "state", "event_id", "id", "endpoint_id", "type"], sa.text("state != 1")),
)
IS_PLACED = sa.text("position IS NOT NULL")


def index_positions(columns: list[str]) -> None:
    op.drop_index("event_log_position", "event_log")
    op.create_index("event_log_position", "event_log", columns, sqlite_where=IS_PLACED, postgresql_where=IS_PLACED)


def upgrade() -> None:
    for name, columns, rows in OF_DELIVERIES:
        op.drop_index(name, "delivery", if_exists=True)  # of a version that was never released, with the state in it
        op.create_index(name, "delivery", columns, sqlite_where=rows, postgresql_where=rows)
    index_positions(["organisation", "position", "type"])


def downgrade() -> None:
    index_positions(["organisation", "position"])
    for name, _, _ in OF_DELIVERIES:
        op.drop_index(name, "delivery")
