"""What history is removed by, the oldest first; and reads of the audit log by their operation."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
expands = True

INDEXES = (
    ("claim_lasting", "claim", ["claimed"], "expires_at IS NULL"),
    ("intent_removable", "intent", ["id"], "livemode = 0 OR status = 'failed'"),
    ("issuance_ended", "issuance", ["updated"], "coalesce(held, '') = '' AND substr(\"key\", 1, 4) NOT IN ('ord_', 'onr_')"),
)


def upgrade() -> None:
    for name, table, columns, rows in INDEXES:
        op.create_index(name, table, columns, sqlite_where=sa.text(rows), postgresql_where=sa.text(rows))
    op.create_index("audit_read_operation", "audit_read", ["organisation", "operation", "id"])


def downgrade() -> None:
    op.drop_index("audit_read_operation", "audit_read")
    for name, table, _, _ in INDEXES:
        op.drop_index(name, table)
