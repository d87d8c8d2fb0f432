"""An order's id was its key, and was handed out: orders get numbers, the old ids open them as access tokens, and are stored as digests.

The number of an old order follows from its id (registry/ids.py), so that every place where the id stood comes to the same one.
What is left of the ids: in `esim_binding`, until a process that has the keyring seals the eSIM again, and in the key of a refund that may
have been sent: another key there would be another refund. It goes when the refund is settled. An address of a shop stays its owner's.
"""

import hashlib

import sqlalchemy as sa
from alembic import op

from registry.ids import former_order_number, without_order_tokens

revision = "0009"
down_revision = "0008"

BATCH = 500
REAL: sa.Double[float] = sa.Double()
IS_BOUND = sa.text("esim_binding IS NOT NULL")
ORDERS = sa.text(
    "SELECT id, organisation, created FROM storefront_order WHERE id LIKE 'ord!_%' ESCAPE '!' AND id > :last ORDER BY id LIMIT :most"
)
TOKEN = sa.text("INSERT INTO order_access (digest, storefront_order, created) VALUES (:digest, :number, :created)")
REWRITES = (
    "UPDATE storefront_order SET top_up_of = :number WHERE top_up_of = :old",
    "UPDATE issuance SET key = :number WHERE organisation = :organisation AND key = :old",
    "UPDATE event SET dedup = :dedup, data = REPLACE(data, :old, :number) WHERE dedup = :old_dedup",
    "UPDATE storefront_order SET id = :number, esim_binding = CASE WHEN esim IS NULL THEN NULL ELSE id END WHERE id = :old",
)
ACCOUNTS = sa.text("SELECT DISTINCT account FROM payment_record WHERE kind = 'charge'")
# By account, so that the primary key gives the order: a page far behind costs no more than the first.
CHARGES = sa.text(
    "SELECT id, body FROM payment_record WHERE account = :account AND kind = 'charge' AND id > :id"
    " AND body LIKE '%\"ord!_%' ESCAPE '!' ORDER BY id LIMIT :most"
)
CHARGE = sa.text("UPDATE payment_record SET body = :body WHERE account = :account AND kind = 'charge' AND id = :id")
ATTEMPTS = sa.text(
    "SELECT id, processor_key FROM payment_attempt WHERE processor_key LIKE 'order-refund:ord!_%' ESCAPE '!'"
    " AND state NOT IN ('sending', 'unknown')"
)
ATTEMPT = sa.text("UPDATE payment_attempt SET processor_key = :processor_key WHERE id = :id")
ADDRESSES = sa.text(
    "INSERT INTO storefront_address (slug, organisation, storefront, created) SELECT slug, organisation, id, created FROM storefront"
)


def upgrade() -> None:
    create_order_access()
    create_storefront_address()
    op.add_column("storefront_order", sa.Column("esim_binding", sa.Text(), nullable=True))
    op.create_index("storefront_order_binding", "storefront_order", ["esim_binding"], sqlite_where=IS_BOUND, postgresql_where=IS_BOUND)
    bind = op.get_bind()
    if bind.dialect.name == "sqlite":
        bind.exec_driver_sql("PRAGMA secure_delete = ON")  # or the ids would stay readable in freed pages of the file
    bind.execute(ADDRESSES)
    number_orders(bind)
    number_charges(bind)
    number_settled_refunds(bind)


def downgrade() -> None:
    """The numbers stay: from a digest nobody gets back to an id."""
    op.drop_index("storefront_order_binding", "storefront_order")
    op.drop_column("storefront_order", "esim_binding")
    op.drop_table("storefront_address")
    op.drop_table("order_access")


def create_order_access() -> None:
    op.create_table(
        "order_access",
        sa.Column("digest", sa.Text(), nullable=False),
        sa.Column("storefront_order", sa.Text(), nullable=False),
        sa.Column("created", REAL, nullable=False),
        sa.Column("ended_at", REAL, nullable=True),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("order_access_order", "order_access", ["storefront_order"])


def create_storefront_address() -> None:
    op.create_table(
        "storefront_address",
        sa.Column("slug", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("storefront", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("slug"),
    )


def number_orders(bind: sa.Connection) -> None:
    """Every order, and what names it: top-ups, its row of the issuance ledger, its event."""
    last = ""
    while rows := bind.execute(ORDERS, {"last": last, "most": BATCH}).all():
        facts = [facts_of(*row) for row in rows]
        bind.execute(TOKEN, facts)
        for statement in REWRITES:
            bind.execute(sa.text(statement), facts)
        last = rows[-1][0]


def facts_of(old: str, organisation: str, created: float) -> dict[str, str | float]:
    """What the statements take of an order."""
    number = former_order_number(old)
    return {
        "old": old,
        "number": number,
        "digest": hashlib.sha256(old.encode()).hexdigest(),
        "organisation": organisation,
        "created": created,
        "old_dedup": f"issued|{organisation}|{old}",
        "dedup": f"issued|{organisation}|{number}",
    }


def number_charges(bind: sa.Connection) -> None:
    """The payments that name an order."""
    for account in bind.execute(ACCOUNTS).scalars().all():
        id = ""
        while rows := bind.execute(CHARGES, {"account": account, "id": id, "most": BATCH}).all():
            bind.execute(CHARGE, [{"account": account, "id": row.id, "body": without_order_tokens(row.body)} for row in rows])
            id = rows[-1].id


def number_settled_refunds(bind: sa.Connection) -> None:
    """The refunds of which nothing is sent any more."""
    rows = bind.execute(ATTEMPTS).all()
    if rows:
        bind.execute(ATTEMPT, [{"id": id, "processor_key": without_order_tokens(key)} for id, key in rows])
