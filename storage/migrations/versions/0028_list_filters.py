"""Lists are filtered: calls that did not end well by how they ended, intents by status, invoices by status or month.

There are few such calls, so their indexes have them alone.
"""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
expands = True

NOT_WELL, REFUSED = sa.text("outcome != 'ok'"), sa.text("status > 201")

LISTS = (
    ("intent_of_status", "intent", "status"),
    ("invoice_of_status", "invoice", "status"),
    ("invoice_of_period", "invoice", "period"),
)


def upgrade() -> None:
    op.create_index("audit_outcome", "audit", ["organisation", "outcome", "at", "id"], sqlite_where=NOT_WELL, postgresql_where=NOT_WELL)
    op.create_index("audit_read_outcome", "audit_read", ["organisation", "outcome", "id"], sqlite_where=REFUSED, postgresql_where=REFUSED)
    for name, table, column in LISTS:
        op.create_index(name, table, ["organisation", column, "id"])


def downgrade() -> None:
    for name, table, _ in LISTS:
        op.drop_index(name, table)
    op.drop_index("audit_read_outcome", "audit_read")
    op.drop_index("audit_outcome", "audit")
