"""What of an organisation's orders is due, found without reading all that it has ever sold."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

IS_DUE = sa.text("due_ms IS NOT NULL")


def upgrade() -> None:
    op.create_index("storefront_order_due_of", "storefront_order", ["organisation", "due_ms"], sqlite_where=IS_DUE, postgresql_where=IS_DUE)


def downgrade() -> None:
    op.drop_index("storefront_order_due_of", "storefront_order")
