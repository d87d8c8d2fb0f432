"""Products and plans of shops whose packages get their own limits, and the packages that are still to get them."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
expands = True


def upgrade() -> None:
    op.create_table("adapted_offer", sa.Column("id", sa.Text(), nullable=False), sa.PrimaryKeyConstraint("id"))
    op.create_table(
        "package_adaptation",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("data_bytes", sa.BigInteger(), nullable=False),
        sa.Column("days", sa.BigInteger(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("lease", sa.Text(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("organisation", "key"),
    )
    op.create_index("package_adaptation_due", "package_adaptation", ["due_ms"])


def downgrade() -> None:
    if op.get_bind().scalar(sa.text("SELECT EXISTS (SELECT 1 FROM package_adaptation)")):
        raise RuntimeError("packages are still to get the limits of what was sold; without this schema they would keep their template's")
    op.drop_index("package_adaptation_due", "package_adaptation")
    op.drop_table("package_adaptation")
    op.drop_table("adapted_offer")
