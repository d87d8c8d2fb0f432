"""How far rows were copied to a small table before theirs is partitioned; the partitions are made by a running worker."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
expands = True

PARTITIONED = "SELECT EXISTS (SELECT 1 FROM pg_class WHERE oid = to_regclass('event') AND relkind = 'p')"


def upgrade() -> None:
    op.create_table(
        "copied_rows",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("last", sa.Text(), nullable=False),
    )


def downgrade() -> None:
    bind = op.get_bind()
    if bind.dialect.name == "postgresql" and bind.scalar(sa.text(PARTITIONED)):
        raise RuntimeError("the history of this database is partitioned; programs of the schema before cannot write to it")
    op.drop_table("copied_rows")
