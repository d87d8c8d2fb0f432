"""The skeleton: organisations and keys, the pipeline's ledgers, connectivity, the outbox."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

REAL: sa.Double[float] = sa.Double()


def upgrade() -> None:
    for create in TABLES.values():
        create()


def downgrade() -> None:
    for name in reversed(TABLES):
        op.drop_table(name)


def create_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("at", REAL, nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("key_id", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=False),
        sa.Column("milliseconds", REAL, nullable=False),
        sa.Column("request_id", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("audit_organisation", "audit", ["organisation", "id"])
    op.create_index("ix_audit_at", "audit", ["at"])


def create_change() -> None:
    op.create_table(
        "change",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def create_claim() -> None:
    op.create_table(
        "claim",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("claimed", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("body", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("organisation", "operation", "key"),
    )
    op.create_index(
        "claim_expires",
        "claim",
        ["expires_at"],
        sqlite_where=sa.text("expires_at IS NOT NULL"),
    )


def create_confirm_token() -> None:
    op.create_table(
        "confirm_token",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("expires_at", REAL, nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("ix_confirm_token_expires_at", "confirm_token", ["expires_at"])


def create_delivery() -> None:
    op.create_table(
        "delivery",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("endpoint_id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("state", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("lease", sa.Text(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("event_id", "endpoint_id", name="delivery_once"),
    )
    op.create_index("delivery_due", "delivery", ["state", "due_ms"])
    op.create_index("ix_delivery_endpoint_id", "delivery", ["endpoint_id"])


def create_delivery_attempt() -> None:
    op.create_table(
        "delivery_attempt",
        sa.Column("delivery_id", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("milliseconds", REAL, nullable=False),
        sa.Column("next_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("delivery_id", "number"),
    )


def create_event() -> None:
    op.create_table(
        "event",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("livemode", sa.Integer(), nullable=False),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("dedup", sa.Text(), nullable=False),
        sa.Column("retry_minute", sa.BigInteger(), nullable=False),
        sa.Column("retry_count", sa.Integer(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("dedup"),
    )
    op.create_index("event_intent", "event", ["intent", "id"])
    op.create_index("event_organisation", "event", ["organisation", "id"])


def create_intent() -> None:
    op.create_table(
        "intent",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("livemode", sa.Integer(), nullable=False),
        sa.Column("plan_id", sa.Text(), nullable=True),
        sa.Column("plan", sa.Text(), nullable=True),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=True),
        sa.Column("esim", sa.Text(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("used_bytes", sa.BigInteger(), nullable=False),
        sa.Column("notified_percent", sa.Integer(), nullable=False),
        sa.Column("attached_at", sa.BigInteger(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("iccid"),
    )
    op.create_index("intent_organisation", "intent", ["organisation", "id"])


def create_metered_line() -> None:
    op.create_table(
        "metered_line",
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=True),
        sa.Column("iccid", sa.Text(), nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("usage_type", sa.Text(), nullable=False),
        sa.Column("mcc", sa.Text(), nullable=True),
        sa.Column("mnc", sa.Text(), nullable=True),
        sa.Column("occurred_at", REAL, nullable=False),
        sa.Column("stored", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("ref"),
    )
    op.create_index("ix_metered_line_iccid", "metered_line", ["iccid"])


def create_network_event() -> None:
    op.create_table(
        "network_event",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=False),
        sa.Column("bridge_type", sa.Text(), nullable=False),
        sa.Column("mcc", sa.Text(), nullable=True),
        sa.Column("mnc", sa.Text(), nullable=True),
        sa.Column("data", sa.Text(), nullable=False),
        sa.Column("occurred_at", REAL, nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_network_event_intent", "network_event", ["intent"])


def create_organisation() -> None:
    op.create_table(
        "organisation",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("tier", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("account_id", sa.BigInteger(), nullable=True),
        sa.Column("own_token", sa.Text(), nullable=True),
        sa.Column("service_own", sa.Integer(), nullable=False),
        sa.Column("platform_fee_bps", sa.Integer(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def create_person() -> None:
    op.create_table(
        "person",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("email", sa.Text(), nullable=True),
        sa.Column("name", sa.Text(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("subject"),
    )
    op.create_index("ix_person_email", "person", ["email"])


def create_product() -> None:
    op.create_table(
        "product",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("data_mb", sa.BigInteger(), nullable=False),
        sa.Column("validity_days", sa.BigInteger(), nullable=False),
        sa.Column("countries", sa.Text(), nullable=False),
        sa.Column("price_cents", sa.BigInteger(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("package_template_id", sa.BigInteger(), nullable=False),
        sa.Column("account_id", sa.BigInteger(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("product_organisation", "product", ["organisation", "id"])


def create_quota() -> None:
    op.create_table(
        "quota",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("period", sa.Text(), nullable=False),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("organisation", "period"),
    )


def create_replica() -> None:
    op.create_table(
        "replica",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("expires_at", REAL, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def create_webhook_endpoint() -> None:
    op.create_table(
        "webhook_endpoint",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("previous_secret", sa.Text(), nullable=True),
        sa.Column("previous_until", sa.BigInteger(), nullable=True),
        sa.Column("failing_since", sa.BigInteger(), nullable=True),
        sa.Column("replay_minute", sa.BigInteger(), nullable=False),
        sa.Column("replay_count", sa.Integer(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_webhook_endpoint_organisation", "webhook_endpoint", ["organisation"])


def create_api_key() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("prefix", sa.Text(), nullable=False),
        sa.Column("organisation_id", sa.Text(), nullable=True),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("restrictions", sa.Text(), nullable=True),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("last_used_day", sa.Text(), nullable=True),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organisation_id"],
            ["organisation.id"],
        ),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["person.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest"),
    )
    op.create_index("ix_api_key_organisation_id", "api_key", ["organisation_id"])


def create_membership() -> None:
    op.create_table(
        "membership",
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("organisation_id", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["organisation_id"],
            ["organisation.id"],
        ),
        sa.ForeignKeyConstraint(
            ["person_id"],
            ["person.id"],
        ),
        sa.PrimaryKeyConstraint("person_id", "organisation_id"),
    )
    op.create_index("ix_membership_organisation_id", "membership", ["organisation_id"])


def create_usage_record() -> None:
    op.create_table(
        "usage_record",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("intent", sa.Text(), nullable=False),
        sa.Column("quantity_mb", REAL, nullable=False),
        sa.Column("livemode", sa.Integer(), nullable=False),
        sa.Column("created", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["intent"],
            ["intent.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("usage_record_intent", "usage_record", ["intent", "id"])


TABLES = {  # referred-to tables first
    "audit": create_audit,
    "change": create_change,
    "claim": create_claim,
    "confirm_token": create_confirm_token,
    "delivery": create_delivery,
    "delivery_attempt": create_delivery_attempt,
    "event": create_event,
    "intent": create_intent,
    "metered_line": create_metered_line,
    "network_event": create_network_event,
    "organisation": create_organisation,
    "person": create_person,
    "product": create_product,
    "quota": create_quota,
    "replica": create_replica,
    "webhook_endpoint": create_webhook_endpoint,
    "api_key": create_api_key,
    "membership": create_membership,
    "usage_record": create_usage_record,
}
