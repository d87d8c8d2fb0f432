"""What credentials with limits of money have made due, and how often they called what."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0024"
expands = True

NAMES = ("credential", "period", "subject")


def upgrade() -> None:
    op.create_table(
        "spending",
        *(sa.Column(name, sa.Text(), nullable=False) for name in NAMES),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(*NAMES),
    )
    op.create_table(
        "spending_charge",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("call", *NAMES)),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("call", *NAMES),
    )
    op.create_index("spending_charge_period", "spending_charge", ["period"])


def downgrade() -> None:
    """What was spent is not known any more: every limit begins anew."""
    op.drop_index("spending_charge_period", "spending_charge")
    op.drop_table("spending_charge")
    op.drop_table("spending")
