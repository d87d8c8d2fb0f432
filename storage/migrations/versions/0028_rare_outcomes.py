"""Calls that ended otherwise than well are found in the audit log by how they ended; there are few, so the index has them alone."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"
expands = True

NOT_WELL, REFUSED = sa.text("outcome != 'ok'"), sa.text("status > 201")


def upgrade() -> None:
    op.create_index("audit_outcome", "audit", ["organisation", "outcome", "at", "id"], sqlite_where=NOT_WELL, postgresql_where=NOT_WELL)
    op.create_index("audit_read_outcome", "audit_read", ["organisation", "outcome", "id"], sqlite_where=REFUSED, postgresql_where=REFUSED)


def downgrade() -> None:
    op.drop_index("audit_read_outcome", "audit_read")
    op.drop_index("audit_outcome", "audit")
