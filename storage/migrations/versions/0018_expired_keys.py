"""What is kept for ever of an idempotency key and of an event that were swept; and which schema a running process was written for."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0015"

LASTING, REMOVABLE = "expires_at IS NULL", "livemode = 0 OR status = 'failed'"
ENDED = "coalesce(held, '') = '' AND substr(\"key\", 1, 4) NOT IN ('ord_', 'onr_')"


def upgrade() -> None:
    op.create_table(
        "expired_key",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=True),
        sa.Column("claimed", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "event_digest",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("digest"),
        sqlite_with_rowid=False,
    )
    op.add_column("replica", sa.Column("revision", sa.Text(), nullable=False, server_default=""))
    op.create_index("claim_lasting", "claim", ["claimed"], sqlite_where=sa.text(LASTING), postgresql_where=sa.text(LASTING))
    op.create_index("intent_removable", "intent", ["id"], sqlite_where=sa.text(REMOVABLE), postgresql_where=sa.text(REMOVABLE))
    op.create_index("issuance_ended", "issuance", ["updated"], sqlite_where=sa.text(ENDED), postgresql_where=sa.text(ENDED))


def downgrade() -> None:
    op.drop_index("issuance_ended", "issuance")
    op.drop_index("intent_removable", "intent")
    op.drop_index("claim_lasting", "claim")
    op.drop_column("replica", "revision")
    op.drop_table("event_digest")
    op.drop_table("expired_key")
