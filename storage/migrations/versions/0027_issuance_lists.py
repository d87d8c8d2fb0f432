"""The ledger of issuances is listed: by state, of some accounts, what was asked for last first; and by the ICCID that was drawn."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
expands = True

DREW_ONE = sa.text("iccid IS NOT NULL")


def upgrade() -> None:
    op.create_index("issuance_of_state", "issuance", ["state", "organisation", "dispatched", "key"])
    op.create_index("issuance_of_account", "issuance", ["account_id", "organisation", "state", "dispatched", "key"])
    op.create_index("issuance_of_iccid", "issuance", ["organisation", "iccid"], sqlite_where=DREW_ONE, postgresql_where=DREW_ONE)


def downgrade() -> None:
    op.drop_index("issuance_of_iccid", "issuance")
    op.drop_index("issuance_of_account", "issuance")
    op.drop_index("issuance_of_state", "issuance")
