"""Every table. SQLModel describes them; statements are Core and live beside the functions that run them.

No index says postgresql_where: SQLAlchemy would import that dialect for it at every start, 34 ms.
Times are Unix seconds unless a name ends in `_ms`. JSON and sealed values are text. Flags are 0 or 1.
"""

import sqlalchemy as sa
from sqlmodel import Field, SQLModel

from storage.calls import limit_tables
from storage.money import money_tables
from storage.money.money_tables import CLUSTERED
from storage.named import Named
from storage.network.network_tables import (
    CountryEntryTable,
    EarlySightingTable,
    InboundPushTable,
    MeteredLineTable,
    NetworkDefaultTable,
    NetworkEventTable,
    PlacedPackageTable,
    SubscriberNotesTable,
    SubscriberNoteTable,
    UpstreamObjectTable,
)
from storage.people.identity_tables import (
    AccessGrantTable,
    AllowanceTable,
    AuthorizationCodeTable,
    AuthorizationRequestTable,
    BrowserSessionTable,
    InvitationTable,
    MailTable,
    OauthClientTable,
    RefreshTokenTable,
    SigningKeyTable,
    VerificationTable,
)
from storage.people.setup_tables import (
    AffiliateTable,
    CommissionTable,
    FormerTokenTable,
    OnboardingTable,
    PlatformFeeTable,
    ReferralTable,
)
from storage.reports import intelligence_tables
from storage.schema_steps import SchemaStepTable
from storage.shop import shop_tables

# What is imported here and belongs to the schema all the same.
__all__ = [
    "AccessGrantTable",
    "AffiliateTable",
    "AllowanceTable",
    "AuthorizationCodeTable",
    "AuthorizationRequestTable",
    "BrowserSessionTable",
    "CommissionTable",
    "CountryEntryTable",
    "EarlySightingTable",
    "FormerTokenTable",
    "InboundPushTable",
    "InvitationTable",
    "MailTable",
    "MeteredLineTable",
    "NetworkDefaultTable",
    "NetworkEventTable",
    "OauthClientTable",
    "OnboardingTable",
    "PlacedPackageTable",
    "PlatformFeeTable",
    "ReferralTable",
    "RefreshTokenTable",
    "SQLModel",
    "SchemaStepTable",
    "SigningKeyTable",
    "SubscriberNoteTable",
    "SubscriberNotesTable",
    "UpstreamObjectTable",
    "VerificationTable",
    "intelligence_tables",
    "limit_tables",
    "money_tables",
    "shop_tables",
]


class OrganisationTable(Named, table=True):
    """A reseller. `mode` and `account_id` are its connection to the upstream; `own_token` is sealed; `simulated`: no real upstream.

    `assigned_account_id` is the sub-account that whoever runs the service opened for it: it stays when an own token takes over.
    `private_receivers`: its webhooks may lead into the operator's own network, to what SERVICE_WEBHOOK_PRIVATE names.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    name: str = Field(sa_type=sa.Text)
    tier: str = Field(sa_type=sa.Text)
    mode: str | None = Field(default=None, sa_type=sa.Text)
    account_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    own_token: str | None = Field(default=None, sa_type=sa.Text)
    service_own: int = 0
    simulated: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    platform_fee_bps: int | None = None
    assigned_account_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    private_receivers: int = Field(default=0, sa_column_kwargs={"server_default": "0"})
    created: int = Field(sa_type=sa.BigInteger)


class PersonTable(Named, table=True):
    """Somebody who signs in. `subject` is an external identity provider's name for them; `address` is how they sign in at the built-in
    one: the e-mail address in lower case, once only, since whoever reads its mail is this person.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    email: str | None = Field(default=None, index=True, sa_type=sa.Text)
    name: str | None = Field(default=None, sa_type=sa.Text)
    subject: str | None = Field(default=None, unique=True, sa_type=sa.Text)
    address: str | None = Field(default=None, sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("person_address", "address", unique=True),)


class MembershipTable(Named, table=True):
    """A person's role in an organisation."""

    person_id: str = Field(primary_key=True, foreign_key="person.id", sa_type=sa.Text)
    organisation_id: str = Field(primary_key=True, foreign_key="organisation.id", index=True, sa_type=sa.Text)
    role: str = Field(sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)


class ApiKeyTable(Named, table=True):
    """An API key: only its SHA-256 is kept, and its first characters for people. `made_with`: the key or grant its maker presented."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    digest: bytes = Field(sa_type=sa.LargeBinary, unique=True)
    prefix: str = Field(sa_type=sa.Text)
    organisation_id: str | None = Field(default=None, foreign_key="organisation.id", index=True, sa_type=sa.Text)
    person_id: str = Field(foreign_key="person.id", sa_type=sa.Text)
    name: str = Field(sa_type=sa.Text)
    description: str | None = Field(default=None, sa_type=sa.Text)
    restrictions: str | None = Field(default=None, sa_type=sa.Text)
    made_with: str | None = Field(default=None, index=True, sa_type=sa.Text)
    expires_at: int | None = Field(default=None, sa_type=sa.BigInteger)
    revoked_at: int | None = Field(default=None, sa_type=sa.BigInteger)
    last_used_day: str | None = Field(default=None, sa_type=sa.Text)
    created: int = Field(sa_type=sa.BigInteger)


class ChangeTable(Named, table=True):
    """Counters that caches compare: `callers` moves with every key, membership, tier and connection."""

    name: str = Field(primary_key=True, sa_type=sa.Text)
    value: int = Field(sa_type=sa.BigInteger)


class QuotaTable(Named, table=True):
    """Calls charged or leased per organisation and UTC day."""

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    period: str = Field(primary_key=True, sa_type=sa.Text)
    used: int = Field(sa_type=sa.BigInteger)


class ReplicaTable(Named, table=True):
    """A living process: claims of one whose lease has run out are unknown.

    `key_ids`: the ids of the encryption keys that it knows, separated by commas, the one that seals first; empty where it has not said.
    `revision`: the schema that its program was written for; empty for programs before 0019.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    expires_at: float = Field(sa_type=sa.Double)
    key_ids: str = Field(default="", sa_type=sa.Text, sa_column_kwargs={"server_default": ""})
    revision: str = Field(default="", sa_type=sa.Text, sa_column_kwargs={"server_default": ""})


class ClaimTable(Named, table=True):
    """An idempotency key; its states are in claims.py. The stored answer is sealed, since it may hold an eSIM.

    `owner` is the process, `lease` the call's own name: what it did not claim it neither sends nor frees.
    """

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    operation: str = Field(primary_key=True, sa_type=sa.Text)
    key: str = Field(primary_key=True, sa_type=sa.Text)
    fingerprint: bytes = Field(sa_type=sa.LargeBinary)
    state: str = Field(sa_type=sa.Text)
    owner: str = Field(sa_type=sa.Text)
    lease: str | None = Field(default=None, sa_type=sa.Text)
    claimed: int = Field(sa_type=sa.BigInteger)
    expires_at: int | None = Field(default=None, sa_type=sa.BigInteger)
    status: int | None = None
    body: str | None = Field(default=None, sa_type=sa.Text)
    __table_args__ = (
        sa.Index(
            "claim_expires",
            "expires_at",
            sqlite_where=sa.text("expires_at IS NOT NULL"),
        ),
        # Keys that never expire, by their age.
        sa.Index("claim_lasting", "claimed", sqlite_where=sa.text("expires_at IS NULL"), postgresql_where=sa.text("expires_at IS NULL")),
        sa.Index("claim_state", "state", "owner"),
    )


class ExpiredKeyTable(Named, table=True):
    """An idempotency key whose call is never made a second time, and whose stored answer is not kept any more. Never swept.

    `digest`: SHA-256 of organisation, operation and key. `status`: the answer's HTTP status; `iccid`: of the eSIM it drew, if any.
    """

    digest: bytes = Field(primary_key=True, sa_type=sa.LargeBinary)
    organisation: str = Field(sa_type=sa.Text)
    operation: str = Field(sa_type=sa.Text)
    fingerprint: bytes = Field(sa_type=sa.LargeBinary)
    status: int
    iccid: str | None = Field(default=None, sa_type=sa.Text)
    claimed: int = Field(sa_type=sa.BigInteger)
    __table_args__ = CLUSTERED


class ConfirmTokenTable(Named, table=True):
    """A pending confirmation; the row is deleted by its use."""

    digest: bytes = Field(sa_type=sa.LargeBinary, primary_key=True)
    organisation: str = Field(sa_type=sa.Text)
    principal: str = Field(sa_type=sa.Text)
    operation: str = Field(sa_type=sa.Text)
    fingerprint: bytes = Field(sa_type=sa.LargeBinary)
    expires_at: float = Field(sa_type=sa.Double, index=True)


class AuditTable(Named, table=True):
    """Who did what, and how it ended. Never arguments; `change` says what a call changed of who gets money and SIMs."""

    id: int | None = Field(default=None, sa_column=sa.Column(sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True))
    at: float = Field(sa_type=sa.Double, index=True)
    organisation: str = Field(sa_type=sa.Text)
    surface: str = Field(sa_type=sa.Text)
    operation: str = Field(sa_type=sa.Text)
    principal: str = Field(sa_type=sa.Text)
    key_id: str = Field(sa_type=sa.Text)
    outcome: str = Field(sa_type=sa.Text)
    status: int
    milliseconds: float = Field(sa_type=sa.Double)
    request_id: str = Field(sa_type=sa.Text)
    change: str | None = Field(default=None, sa_type=sa.Text)
    __table_args__ = (
        sa.Index("audit_organisation", "organisation", "at", "id"),
        sa.Index("audit_operation", "organisation", "operation", "at", "id"),
        sa.Index("audit_principal", "organisation", "principal", "at", "id"),
    )


class AuditNameTable(Named, table=True):
    """A text that repeats in the audit log of reads: an organisation's id, a person's, a key's, an operation, an outcome or a surface."""

    id: int | None = Field(default=None, primary_key=True)
    text: str = Field(sa_type=sa.Text)
    __table_args__ = (sa.Index("audit_name_text", "text", unique=True),)


class AuditReadTable(Named, table=True):
    """A read, or a refusal, in short: the numbers of its texts. `id` begins with the milliseconds (audit_reads.py).

    Choice: one index beside the key and no more, since each is as large as a third of a row. So an operation's reads are looked up, and
    those of a person, an outcome or a surface are looked for among the organisation's.
    """

    id: int = Field(sa_type=sa.BigInteger)
    organisation: int
    operation: int
    principal: int
    key: int
    outcome: int
    surface: int
    microseconds: int
    status: int = Field(sa_type=sa.SmallInteger)
    request: bytes = Field(sa_type=sa.LargeBinary)
    __table_args__ = (
        sa.PrimaryKeyConstraint("organisation", "id"),
        sa.Index("audit_read_operation", "organisation", "operation", "id"),
        CLUSTERED,
    )


class ProductTable(Named, table=True):
    """A plan an organisation defined."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    name: str = Field(sa_type=sa.Text)
    data_mb: int = Field(sa_type=sa.BigInteger)
    validity_days: int = Field(sa_type=sa.BigInteger)
    countries: str = Field(sa_type=sa.Text)
    price_cents: int = Field(sa_type=sa.BigInteger)
    currency: str = Field(sa_type=sa.Text)
    package_template_id: int = Field(sa_type=sa.BigInteger)
    account_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("product_organisation", "organisation", "id"),)


REMOVABLE = sa.text("livemode = 0 OR status = 'failed'")


class IntentTable(Named, table=True):
    """A request for one eSIM. `plan` is the plan as it was when it was attached; `esim` is sealed. Both figures of usage: metering.py."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    status: str = Field(sa_type=sa.Text)
    livemode: int
    plan_id: str | None = Field(default=None, sa_type=sa.Text)
    plan: str | None = Field(default=None, sa_type=sa.Text)
    details: str = Field(sa_type=sa.Text)
    iccid: str | None = Field(default=None, unique=True, sa_type=sa.Text)
    esim: str | None = Field(default=None, sa_type=sa.Text)
    error: str | None = Field(default=None, sa_type=sa.Text)
    used_bytes: int = Field(sa_type=sa.BigInteger)
    reported_bytes: int = Field(sa_type=sa.BigInteger, sa_column_kwargs={"server_default": "0"})
    notified_percent: int
    attached_at: int | None = Field(default=None, sa_type=sa.BigInteger)
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (
        sa.Index("intent_organisation", "organisation", "id"),
        # What may be removed by its age: no line of the network is such an intent's.
        sa.Index("intent_removable", "id", sqlite_where=REMOVABLE, postgresql_where=REMOVABLE),
    )


class UsageRecordTable(Named, table=True):
    """Usage a developer reported for a test intent."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    intent: str = Field(foreign_key="intent.id", sa_type=sa.Text)
    quantity_mb: float = Field(sa_type=sa.Double)
    livemode: int
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("usage_record_intent", "intent", "id"),)


class EventTable(Named, table=True):
    """An event of api.md 6. `dedup` makes an event that may happen once per intent happen once."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    intent: str = Field(sa_type=sa.Text)
    type: str = Field(sa_type=sa.Text)
    livemode: int
    data: str = Field(sa_type=sa.Text)
    dedup: str = Field(unique=True, sa_type=sa.Text)
    retry_minute: int = Field(sa_type=sa.BigInteger)
    retry_count: int
    created: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (sa.Index("event_organisation", "organisation", "id"), sa.Index("event_intent", "intent", "id"))


class EventDigestTable(Named, table=True):
    """SHA-256 of the `dedup` of an event that is not kept any more: it never happens again. Never swept."""

    digest: bytes = Field(primary_key=True, sa_type=sa.LargeBinary)
    __table_args__ = CLUSTERED


class WebhookEndpointTable(Named, table=True):
    """Where events are sent. Secrets are sealed; during a rotation the previous one signs as well.

    One with a `schedule` takes that schedule's reports and nothing else, and no list of endpoints shows it. `proven` is 1 once it has
    answered 2xx.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    organisation: str = Field(index=True, sa_type=sa.Text)
    url: str = Field(sa_type=sa.Text)
    status: str = Field(sa_type=sa.Text)
    secret: str = Field(sa_type=sa.Text)
    previous_secret: str | None = Field(default=None, sa_type=sa.Text)
    previous_until: int | None = Field(default=None, sa_type=sa.BigInteger)
    failing_since: int | None = Field(default=None, sa_type=sa.BigInteger)
    replay_minute: int = Field(sa_type=sa.BigInteger)
    replay_count: int
    created: int = Field(sa_type=sa.BigInteger)
    schedule: str | None = Field(default=None, sa_type=sa.Text)
    proven: int = 0


class WebhookReceiverTable(Named, table=True):
    """A host that events are sent to, whoever's endpoints point at it, and how much it may be sent (receivers.py)."""

    host: str = Field(primary_key=True, sa_type=sa.Text)
    strict: int
    open: int
    at_ms: int = Field(sa_type=sa.BigInteger)
    credit: int


# The addition, as the statements spell it: with a bare column SQLite would take the index of all that is pending.
WAITS = sa.text("state + 0 = 0 AND lease IS NULL")


class DeliveryTable(Named, table=True):
    """One event for one endpoint: the single truth of the outbox. state: 0 pending, 1 delivered, 2 failed."""

    id: str = Field(primary_key=True, sa_type=sa.Text)
    event_id: str = Field(sa_type=sa.Text)
    endpoint_id: str = Field(sa_type=sa.Text)
    organisation: str = Field(sa_type=sa.Text)
    state: int
    attempt: int
    attempts: int
    due_ms: int = Field(sa_type=sa.BigInteger)
    lease: str | None = Field(default=None, sa_type=sa.Text)
    created_ms: int = Field(sa_type=sa.BigInteger)
    __table_args__ = (
        sa.UniqueConstraint("event_id", "endpoint_id", name="delivery_once"),
        sa.Index("delivery_due", "state", "due_ms"),
        # What waits, of each endpoint. What is under way is not there, so that a claim changes one place of an endpoint's queue, not two.
        sa.Index("delivery_waiting", "endpoint_id", "due_ms", sqlite_where=WAITS, postgresql_where=WAITS),
        sa.Index("delivery_failed", "endpoint_id", "due_ms", sqlite_where=sa.text("state = 2"), postgresql_where=sa.text("state = 2")),
        # What is under way, or was when its worker died: a few of however many are pending.
        sa.Index(
            "delivery_leased",
            "due_ms",
            "endpoint_id",
            "organisation",
            sqlite_where=sa.text("lease IS NOT NULL"),
            postgresql_where=sa.text("lease IS NOT NULL"),
        ),
    )


class DeliveryAttemptTable(Named, table=True):
    """One POST: a class of outcome, never the answer or the address it went to."""

    delivery_id: str = Field(primary_key=True, sa_type=sa.Text)
    number: int = Field(primary_key=True)
    at_ms: int = Field(sa_type=sa.BigInteger)
    outcome: str = Field(sa_type=sa.Text)
    milliseconds: float = Field(sa_type=sa.Double)
    next_ms: int | None = Field(default=None, sa_type=sa.BigInteger)


REMOVABLE_ISSUANCE = sa.text("coalesce(held, '') = '' AND substr(\"key\", 1, 4) NOT IN ('ord_', 'onr_')")


class IssuanceTable(Named, table=True):
    """One eSIM drawn from an account's stock, under one key for ever: the ledger of api.md 3.6. Its states are in issuance.py.

    `claim_key` and `operation` name the idempotency claim whose stored answer follows the row. `held` is the ICCID while it is this
    row's, so that no two rows have it; `iccid` stays for the record. `replied` is one that an answer named and that was not taken.
    `clear_seconds`: for how long nothing was seen since `clear_since`, by the clocks of those who looked. `obstacle`: what hindered
    settling it when it was looked into last (operations/services/issuing/obstacles.py).
    """

    organisation: str = Field(primary_key=True, sa_type=sa.Text)
    key: str = Field(primary_key=True, sa_type=sa.Text)
    operation: str = Field(sa_type=sa.Text)
    claim_key: str | None = Field(default=None, sa_type=sa.Text)
    principal: str = Field(sa_type=sa.Text)
    account_id: int = Field(sa_type=sa.BigInteger)
    template_id: int = Field(sa_type=sa.BigInteger)
    validity_days: int | None = Field(default=None, sa_type=sa.BigInteger)
    period: str | None = Field(default=None, sa_type=sa.Text)
    intent: str | None = Field(default=None, sa_type=sa.Text)
    state: str = Field(sa_type=sa.Text)
    owner: str = Field(sa_type=sa.Text)
    stock: str = Field(sa_type=sa.Text)
    iccid: str | None = Field(default=None, sa_type=sa.Text)
    held: str | None = Field(default=None, unique=True, sa_type=sa.Text)
    replied: str | None = Field(default=None, sa_type=sa.Text)
    subscriber_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    sim_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    package_id: int | None = Field(default=None, sa_type=sa.BigInteger)
    steps: str | None = Field(default=None, sa_type=sa.Text)
    note: str | None = Field(default=None, sa_type=sa.Text)
    dispatched: float = Field(sa_type=sa.Double)
    updated: float = Field(sa_type=sa.Double)
    clear_since: float | None = Field(default=None, sa_type=sa.Double)
    clear_seconds: float | None = Field(default=None, sa_type=sa.Double)
    obstacle: str | None = Field(default=None, sa_type=sa.Text)
    due_ms: int = Field(sa_type=sa.BigInteger)
    lease: str | None = Field(default=None, sa_type=sa.Text)
    __table_args__ = (
        sa.Index("issuance_due", "state", "due_ms"),
        sa.Index("issuance_unknown", "organisation", "due_ms", sqlite_where=sa.text("state || '' = 'outcome_unknown'")),
        sa.Index("issuance_unknown_of", "organisation", "account_id", "due_ms", sqlite_where=sa.text("state || '' = 'outcome_unknown'")),
        sa.Index("issuance_account", "account_id", "state", "updated"),
        sa.Index("issuance_package", "package_id"),
        sa.Index("issuance_claim", "organisation", "claim_key"),
        # Rows without an eSIM, and of no order, by the time they ended.
        sa.Index("issuance_ended", "updated", sqlite_where=REMOVABLE_ISSUANCE, postgresql_where=REMOVABLE_ISSUANCE),
    )


class StockTable(Named, table=True):
    """The free eSIMs of an account as they were just before a dispatch: ICCIDs, one per line; `complete` 0: some could not be read.

    `returned` names those that a row of the ledger had before, with the row.
    """

    id: str = Field(primary_key=True, sa_type=sa.Text)
    account_id: int = Field(sa_type=sa.BigInteger)
    taken: float = Field(sa_type=sa.Double, index=True)
    complete: int
    iccids: str = Field(sa_type=sa.Text)
    returned: str = Field(sa_type=sa.Text)


class JobTable(Named, table=True):
    """Work that one replica at a time does: when it is due next, and who does it now. `due_ms` ends a lease, too."""

    name: str = Field(primary_key=True, sa_type=sa.Text)
    due_ms: int = Field(sa_type=sa.BigInteger)
    lease: str | None = Field(default=None, sa_type=sa.Text)
