"""Tables of shops: storefronts, what they sell, and what buyers ordered. Part of the schema, as those of schema.py.

Amounts are whole minor units; lists and records are JSON text; times are Unix seconds.
"""

import sqlalchemy as sa
from sqlmodel import Field

from storage.named import Named


class StorefrontTable(Named, table=True):
    """A hosted shop of an organisation. `status`: draft or published. `logo` is a data: URI of at most 32 KiB."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    slug: str = Field(unique=True, sa_type=sa.Text)
    name: str = Field(sa_type=sa.Text)
    tagline: str | None = Field(default=None, sa_type=sa.Text)
    logo: str | None = Field(default=None, sa_type=sa.Text)
    accent: str | None = Field(default=None, sa_type=sa.Text)
    support_email: str | None = Field(default=None, sa_type=sa.Text)
    currency: str = Field(sa_type=sa.Text)
    status: str = Field(sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    updated: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("storefront_organisation", "organisation", "id"),)


class StorefrontPlanTable(Named, table=True):
    """What a shop sells, in its currency. `account_id` null: the organisation's connected account; `place` is its display order.

    `price_id` and `price_mode` name a price at the payment processor: both or neither. It is kept, and nothing is charged by it.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    storefront: str = Field(sa_type=sa.Text)
    slug: str = Field(sa_type=sa.Text)
    name: str = Field(sa_type=sa.Text)
    data_mb: int = Field(sa_type=sa.BigInteger)
    validity_days: int = Field(sa_type=sa.BigInteger)
    countries: str = Field(sa_type=sa.Text)
    price_cents: int = Field(sa_type=sa.BigInteger)
    on_sale: int
    place: int = Field(sa_type=sa.BigInteger)
    template_id: int = Field(sa_type=sa.BigInteger)
    account_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    product: str | None = Field(default=None, sa_type=sa.Text)
    price_id: str | None = Field(default=None, sa_type=sa.Text)
    price_mode: str | None = Field(default=None, sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    updated: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("storefront_plan_slug", "storefront", "slug", unique=True),)


class StorefrontOrderTable(Named, table=True):
    """What a buyer ordered: an eSIM, or more data for one. `id` is its number, onr_ or tuc_, which opens nothing; a top-up's `top_up_of`
    is the number of its order.

    `status`: pending_payment, paid, provisioning, ready, failed or needs_review; what becomes of a ready eSIM afterwards is told by the
    ledger's row, whose key is the order's number. `esim` is sealed to the number, or to `esim_binding` where that is set. `bought` is the
    plan as it was sold. `payee` is the account at the payment processor,
    `session` the checkout there. `refund`: null, owed, sending, unknown, done or failed. `before` is what was noted of the line
    before a top-up was sent (operations/services/shop/top_up_evidence.py). `owner` is the process that sends it, `lease` who works on it,
    `due_ms` when somebody is to look at it next.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    top_up_of: str | None = Field(default=None, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    storefront: str = Field(sa_type=sa.Text)
    plan: str = Field(sa_type=sa.Text)
    bought: str = Field(sa_type=sa.Text)
    template_id: int = Field(sa_type=sa.BigInteger)
    account_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    amount: int = Field(sa_type=sa.BigInteger)
    currency: str = Field(sa_type=sa.Text)
    email: str | None = Field(default=None, sa_type=sa.Text)
    language: str = Field(sa_type=sa.Text)
    status: str = Field(sa_type=sa.Text)
    code: str | None = Field(default=None, sa_type=sa.Text)
    payee: str = Field(sa_type=sa.Text)
    session: str | None = Field(default=None, unique=True, sa_type=sa.Text)
    session_ends: int | None = Field(default=None, sa_type=sa.BigInteger)
    payment_intent: str | None = Field(default=None, sa_type=sa.Text)
    paid_amount: int | None = Field(default=None, sa_type=sa.BigInteger)
    paid_at: float | None = Field(default=None, sa_type=sa.Double)
    iccid: str | None = Field(default=None, sa_type=sa.Text)
    esim: str | None = Field(default=None, sa_type=sa.Text)
    esim_binding: str | None = Field(default=None, sa_type=sa.Text)
    package_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    before: str | None = Field(default=None, sa_type=sa.Text)
    refund: str | None = Field(default=None, sa_type=sa.Text)
    refund_attempt: str | None = Field(default=None, sa_type=sa.Text)
    cancelled_at: float | None = Field(default=None, sa_type=sa.Double)
    ready_at: float | None = Field(default=None, sa_type=sa.Double)
    owner: str | None = Field(default=None, sa_type=sa.Text)
    lease: str | None = Field(default=None, sa_type=sa.Text)
    due_ms: int | None = Field(default=None, sa_type=sa.BigInteger)
    tries: int = 0
    created: float = Field(sa_type=sa.Double)
    updated: float = Field(sa_type=sa.Double)
    __table_args__ = (
        sa.Index("storefront_order_newest", "organisation", "created", "id"),
        sa.Index("storefront_order_buyer", "storefront", "email"),
        sa.Index("storefront_order_top_up", "top_up_of"),
        *(
            sa.Index(name, "organisation", "due_ms", sqlite_where=sa.text(rows))
            for name, rows in (
                ("storefront_order_due_paid", "due_ms IS NOT NULL AND status || '' != 'pending_payment'"),
                ("storefront_order_due_unpaid", "due_ms IS NOT NULL AND status || '' = 'pending_payment'"),
            )
        ),
        sa.Index("storefront_order_status", "status", "updated"),
        sa.Index(
            "storefront_order_binding",
            "esim_binding",
            sqlite_where=sa.text("esim_binding IS NOT NULL"),
            postgresql_where=sa.text("esim_binding IS NOT NULL"),
        ),
    )


class OrderAccessTable(Named, table=True):
    """An access token of an order, as its SHA-256 in hexadecimal. `storefront_order` is the order's number, `ended_at` when it ended."""

    digest: str = Field(primary_key=True, sa_type=sa.Text)
    storefront_order: str = Field(sa_type=sa.Text)
    created: float = Field(sa_type=sa.Double)
    ended_at: float | None = Field(default=None, sa_type=sa.Double)
    __table_args__ = (sa.Index("order_access_order", "storefront_order"),)


class StorefrontAddressTable(Named, table=True):
    """An address that a shop has or had: it stays its organisation's, so that its buyers' links never lead to another's shop."""

    slug: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    storefront: str = Field(sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
