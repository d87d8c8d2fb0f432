"""What is due is found by going from organisation to organisation, whatever number of rows each of them has."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
expands = True

UNKNOWN = "{state} = 'outcome_unknown'"
# On SQLite in the words of the statements, which keep it from other indexes.
INDEXES = (
    ("storefront_order_due_paid", "storefront_order", ["organisation", "due_ms"], "due_ms IS NOT NULL AND {status} != 'pending_payment'"),
    ("storefront_order_due_unpaid", "storefront_order", ["organisation", "due_ms"], "due_ms IS NOT NULL AND {status} = 'pending_payment'"),
    ("issuance_unknown", "issuance", ["organisation", "due_ms"], UNKNOWN),
    ("issuance_unknown_of", "issuance", ["organisation", "account_id", "due_ms"], UNKNOWN),
)
FORMER = "due_ms IS NOT NULL"


def upgrade() -> None:
    for name, table, columns, rows in INDEXES:
        hidden, plain = rows.format(state="state || ''", status="status || ''"), rows.format(state="state", status="status")
        op.create_index(name, table, columns, sqlite_where=sa.text(hidden), postgresql_where=sa.text(plain))
    op.drop_index("storefront_order_due_of", "storefront_order")
    op.drop_index("storefront_order_due", "storefront_order")
    op.drop_index("issuance_account", "issuance")
    op.create_index("issuance_account", "issuance", ["account_id", "state", "updated"])


def downgrade() -> None:
    op.drop_index("issuance_account", "issuance")
    op.create_index("issuance_account", "issuance", ["account_id", "state"])
    op.create_index("storefront_order_due", "storefront_order", ["due_ms"])
    former, columns = sa.text(FORMER), ["organisation", "due_ms"]
    op.create_index("storefront_order_due_of", "storefront_order", columns, sqlite_where=former, postgresql_where=former)
    for name, table, _, _ in INDEXES:
        op.drop_index(name, table)
