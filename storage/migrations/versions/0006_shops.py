"""Shops: storefronts, what they sell, and what buyers ordered."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

REAL: sa.Double[float] = sa.Double()


def upgrade() -> None:
    create_storefront()
    create_storefront_plan()
    create_storefront_order()


def downgrade() -> None:
    op.drop_table("storefront_order")
    op.drop_table("storefront_plan")
    op.drop_table("storefront")


def create_storefront() -> None:
    op.create_table(
        "storefront",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("tagline", sa.Text(), nullable=True),
        sa.Column("logo", sa.Text(), nullable=True),
        sa.Column("accent", sa.Text(), nullable=True),
        sa.Column("support_email", sa.Text(), nullable=True),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("slug"),
    )
    op.create_index("storefront_organisation", "storefront", ["organisation", "id"])


def create_storefront_plan() -> None:
    op.create_table(
        "storefront_plan",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("storefront", sa.Text(), nullable=False),
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("data_mb", sa.BigInteger(), nullable=False),
        sa.Column("validity_days", sa.BigInteger(), nullable=False),
        sa.Column("countries", sa.Text(), nullable=False),
        sa.Column("price_cents", sa.BigInteger(), nullable=False),
        sa.Column("on_sale", sa.Integer(), nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        sa.Column("template_id", sa.BigInteger(), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=True),
        sa.Column("product", sa.Text(), nullable=True),
        sa.Column("price_id", sa.Text(), nullable=True),
        sa.Column("price_mode", sa.Text(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.Column("updated", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("storefront_plan_slug", "storefront_plan", ["storefront", "slug"], unique=True)


def create_storefront_order() -> None:
    op.create_table(
        "storefront_order",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("top_up_of", sa.Text(), nullable=True),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("storefront", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("bought", sa.Text(), nullable=False),
        sa.Column("template_id", sa.BigInteger(), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=True),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("language", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=True),
        sa.Column("payee", sa.Text(), nullable=False),
        sa.Column("session", sa.Text(), nullable=True),
        sa.Column("session_ends", sa.BigInteger(), nullable=True),
        sa.Column("payment_intent", sa.Text(), nullable=True),
        sa.Column("paid_amount", sa.BigInteger(), nullable=True),
        sa.Column("paid_at", REAL, nullable=True),
        sa.Column("iccid", sa.Text(), nullable=True),
        sa.Column("esim", sa.Text(), nullable=True),
        sa.Column("package_id", sa.BigInteger(), nullable=True),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("refund", sa.Text(), nullable=True),
        sa.Column("refund_attempt", sa.Text(), nullable=True),
        sa.Column("cancelled_at", REAL, nullable=True),
        sa.Column("ready_at", REAL, nullable=True),
        sa.Column("owner", sa.Text(), nullable=True),
        sa.Column("lease", sa.Text(), nullable=True),
        sa.Column("due_ms", sa.BigInteger(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("created", REAL, nullable=False),
        sa.Column("updated", REAL, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("session"),
    )
    op.create_index("storefront_order_newest", "storefront_order", ["organisation", "created", "id"])
    op.create_index("storefront_order_buyer", "storefront_order", ["storefront", "email"])
    op.create_index("storefront_order_top_up", "storefront_order", ["top_up_of"])
    op.create_index("storefront_order_due", "storefront_order", ["due_ms"])
    op.create_index("storefront_order_status", "storefront_order", ["status", "updated"])
