"""Tags that organisations give their lines."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
expands = True


def upgrade() -> None:
    op.create_table(
        "line_tag",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("organisation", "iccid", "tag", "tagged_by")),
        sa.Column("tagged", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("organisation", "iccid", "tag"),
        sqlite_with_rowid=False,
    )
    op.create_index("line_tag_lines", "line_tag", ["organisation", "tag", "iccid"])


def downgrade() -> None:
    op.drop_table("line_tag")
