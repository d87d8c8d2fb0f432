"""Every table. SQLModel describes them; statements are Core and live beside the functions that run them.

Times are Unix seconds unless a name ends in `_ms`. JSON and sealed values are text. Flags are 0 or 1.
"""

import re
from typing import Any

import sqlalchemy as sa
from sqlalchemy.orm import declared_attr
from sqlmodel import Field, SQLModel


def big(**options: Any) -> Any:
    """A 64-bit integer on both databases; plain integers are 32 bits on PostgreSQL."""
    return Field(sa_type=sa.BigInteger, **options)


def text(**options: Any) -> Any:
    """Text without a length."""
    return Field(sa_type=sa.Text, **options)


class Named(SQLModel):
    """Names a table after its class: WebhookEndpointTable is webhook_endpoint."""

    # SQLModel types the attribute as a descriptor and takes a declared_attr all the same; checkers cannot see that.
    @declared_attr.directive
    def __tablename__(cls) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__.removesuffix("Table")).lower()


class OrganisationTable(Named, table=True):
    """A reseller. `mode` and `account_id` are its connection to the upstream; `own_token` is sealed."""

    id: str = text(primary_key=True)
    name: str = text()
    tier: str = text()
    mode: str | None = text(default=None)
    account_id: int | None = big(default=None)
    own_token: str | None = text(default=None)
    service_own: int = 0
    platform_fee_bps: int | None = None
    created: int = big()


class PersonTable(Named, table=True):
    """Somebody who signs in. `subject` is the identity provider's name for them."""

    id: str = text(primary_key=True)
    email: str | None = text(default=None, index=True)
    name: str | None = text(default=None)
    subject: str | None = text(default=None, unique=True)
    created: int = big()


class MembershipTable(Named, table=True):
    """A person's role in an organisation."""

    person_id: str = text(primary_key=True, foreign_key="person.id")
    organisation_id: str = text(primary_key=True, foreign_key="organisation.id", index=True)
    role: str = text()
    created: int = big()


class ApiKeyTable(Named, table=True):
    """An API key: only its SHA-256 is kept, and its first characters for people."""

    id: str = text(primary_key=True)
    digest: bytes = Field(sa_type=sa.LargeBinary, unique=True)
    prefix: str = text()
    organisation_id: str | None = text(default=None, foreign_key="organisation.id", index=True)
    person_id: str = text(foreign_key="person.id")
    name: str = text()
    description: str | None = text(default=None)
    restrictions: str | None = text(default=None)
    expires_at: int | None = big(default=None)
    revoked_at: int | None = big(default=None)
    last_used_day: str | None = text(default=None)
    created: int = big()


class ChangeTable(Named, table=True):
    """Counters that caches compare: `callers` moves with every key, membership, tier and connection."""

    name: str = text(primary_key=True)
    value: int = big()


class QuotaTable(Named, table=True):
    """Calls charged or leased per organisation and UTC day."""

    organisation: str = text(primary_key=True)
    period: str = text(primary_key=True)
    used: int = big()


class ReplicaTable(Named, table=True):
    """A living process: claims of one whose lease has run out are unknown."""

    id: str = text(primary_key=True)
    expires_at: float = Field(sa_type=sa.Double)


class ClaimTable(Named, table=True):
    """An idempotency key: `dispatching`, `done` or `unknown`. The stored answer is sealed, since it may hold an eSIM."""

    organisation: str = text(primary_key=True)
    operation: str = text(primary_key=True)
    key: str = text(primary_key=True)
    fingerprint: bytes = Field(sa_type=sa.LargeBinary)
    state: str = text()
    owner: str = text()
    claimed: int = big()
    expires_at: int | None = big(default=None)
    status: int | None = None
    body: str | None = text(default=None)
    __table_args__ = (
        sa.Index(
            "claim_expires",
            "expires_at",
            sqlite_where=sa.text("expires_at IS NOT NULL"),
            postgresql_where=sa.text("expires_at IS NOT NULL"),
        ),
    )


class ConfirmTokenTable(Named, table=True):
    """A pending confirmation; the row is deleted by its use."""

    digest: bytes = Field(sa_type=sa.LargeBinary, primary_key=True)
    organisation: str = text()
    principal: str = text()
    operation: str = text()
    fingerprint: bytes = Field(sa_type=sa.LargeBinary)
    expires_at: float = Field(sa_type=sa.Double, index=True)


class AuditTable(Named, table=True):
    """Who did what, and how it ended. Never arguments."""

    id: int | None = Field(default=None, sa_column=sa.Column(sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True))
    at: float = Field(sa_type=sa.Double, index=True)
    organisation: str = text()
    surface: str = text()
    operation: str = text()
    principal: str = text()
    key_id: str = text()
    outcome: str = text()
    status: int
    milliseconds: float = Field(sa_type=sa.Double)
    request_id: str = text()
    __table_args__ = (sa.Index("audit_organisation", "organisation", "id"),)


class ProductTable(Named, table=True):
    """A plan an organisation defined."""

    id: str = text(primary_key=True)
    organisation: str = text()
    name: str = text()
    data_mb: int = big()
    validity_days: int = big()
    countries: str = text()
    price_cents: int = big()
    currency: str = text()
    package_template_id: int = big()
    account_id: int | None = big(default=None)
    created: int = big()
    __table_args__ = (sa.Index("product_organisation", "organisation", "id"),)


class IntentTable(Named, table=True):
    """A request for one eSIM. `plan` is the plan as it was when it was attached; `esim` is sealed."""

    id: str = text(primary_key=True)
    organisation: str = text()
    status: str = text()
    livemode: int
    plan_id: str | None = text(default=None)
    plan: str | None = text(default=None)
    details: str = text()
    iccid: str | None = text(default=None, unique=True)
    esim: str | None = text(default=None)
    error: str | None = text(default=None)
    used_bytes: int = big()
    notified_percent: int
    attached_at: int | None = big(default=None)
    created: int = big()
    __table_args__ = (sa.Index("intent_organisation", "organisation", "id"),)


class UsageRecordTable(Named, table=True):
    """Usage a developer reported for a test intent."""

    id: str = text(primary_key=True)
    organisation: str = text()
    intent: str = text(foreign_key="intent.id")
    quantity_mb: float = Field(sa_type=sa.Double)
    livemode: int
    created: int = big()
    __table_args__ = (sa.Index("usage_record_intent", "intent", "id"),)


class MeteredLineTable(Named, table=True):
    """Usage the network metered, as the bridge reported it; `ref` makes a repeated line have no effect."""

    ref: str = text(primary_key=True)
    intent: str | None = text(default=None)
    iccid: str = text(index=True)
    bytes: int = big()
    usage_type: str = text()
    mcc: str | None = text(default=None)
    mnc: str | None = text(default=None)
    occurred_at: float = Field(sa_type=sa.Double)
    stored: int = big()


class NetworkEventTable(Named, table=True):
    """What the bridge observed about an intent's line."""

    id: str = text(primary_key=True)
    intent: str = text(index=True)
    iccid: str = text()
    bridge_type: str = text()
    mcc: str | None = text(default=None)
    mnc: str | None = text(default=None)
    data: str = text()
    occurred_at: float = Field(sa_type=sa.Double)
    created: int = big()


class EventTable(Named, table=True):
    """An event of api.md 6. `dedup` makes an event that may happen once per intent happen once."""

    id: str = text(primary_key=True)
    organisation: str = text()
    intent: str = text()
    type: str = text()
    livemode: int
    data: str = text()
    dedup: str = text(unique=True)
    retry_minute: int = big()
    retry_count: int
    created: int = big()
    __table_args__ = (sa.Index("event_organisation", "organisation", "id"), sa.Index("event_intent", "intent", "id"))


class WebhookEndpointTable(Named, table=True):
    """Where events are sent. Secrets are sealed; during a rotation the previous one signs as well."""

    id: str = text(primary_key=True)
    organisation: str = text(index=True)
    url: str = text()
    status: str = text()
    secret: str = text()
    previous_secret: str | None = text(default=None)
    previous_until: int | None = big(default=None)
    failing_since: int | None = big(default=None)
    created: int = big()


class DeliveryTable(Named, table=True):
    """One event for one endpoint: the single truth of the outbox. state: 0 pending, 1 delivered, 2 failed."""

    id: str = text(primary_key=True)
    event_id: str = text()
    endpoint_id: str = text(index=True)
    organisation: str = text()
    state: int
    attempt: int
    attempts: int
    due_ms: int = big()
    lease: str | None = text(default=None)
    created_ms: int = big()
    __table_args__ = (
        sa.UniqueConstraint("event_id", "endpoint_id", name="delivery_once"),
        sa.Index("delivery_due", "due_ms", sqlite_where=sa.text("state = 0"), postgresql_where=sa.text("state = 0")),
    )


class DeliveryAttemptTable(Named, table=True):
    """One POST: a class of outcome, never the answer or the address it went to."""

    delivery_id: str = text(primary_key=True)
    number: int = Field(primary_key=True)
    at_ms: int = big()
    outcome: str = text()
    milliseconds: float = Field(sa_type=sa.Double)
    next_ms: int | None = big(default=None)
