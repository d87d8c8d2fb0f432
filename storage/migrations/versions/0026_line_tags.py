"""Tags that organisations give their lines."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0024"
expands = True


def upgrade() -> None:
    op.create_table(
        "line_tag",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("organisation", "iccid", "tag", "tagged_by")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("subscriber_id", "tagged")),
        sa.PrimaryKeyConstraint("organisation", "iccid", "tag"),
        sqlite_with_rowid=False,
    )
    op.create_index("line_tag_lines", "line_tag", ["organisation", "tag", "subscriber_id"])


def downgrade() -> None:
    op.drop_table("line_tag")
