"""The own token that another one replaced, for a day; and what a call changed of who gets money and SIMs, in the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"

REAL: sa.Double[float] = sa.Double()


def upgrade() -> None:
    op.create_table(
        "former_token",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("expires_at", REAL, nullable=False),
        sa.ForeignKeyConstraint(["organisation"], ["organisation.id"]),
        sa.PrimaryKeyConstraint("organisation"),
    )
    op.create_index("ix_former_token_expires_at", "former_token", ["expires_at"])
    op.add_column("audit", sa.Column("change", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("audit", "change")
    op.drop_index("ix_former_token_expires_at", "former_token")
    op.drop_table("former_token")
