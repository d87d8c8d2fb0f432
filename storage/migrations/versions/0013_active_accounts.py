"""Whether an organisation's account at the payment processor was ever active: what was paid once does not give way like one just begun."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("billing_config", sa.Column("connect_was_active", sa.Integer, nullable=False, server_default="0"))
    # Orders are taken for an active account alone: one that names the account shows that it was.
    op.execute(
        "UPDATE billing_config SET connect_was_active = 1 WHERE connect_status = 'active' OR EXISTS"
        " (SELECT 1 FROM storefront_order WHERE storefront_order.payee = billing_config.connect_account)"
    )


def downgrade() -> None:
    op.drop_column("billing_config", "connect_was_active")
