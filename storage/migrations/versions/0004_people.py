"""People who sign up and sign in, programs that act for them, and how an organisation sets itself up."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

REAL: sa.Double[float] = sa.Double()
TABLES = (
    "verification",
    "allowance",
    "browser_session",
    "access_grant",
    "authorization_request",
    "authorization_code",
    "refresh_token",
    "oauth_client",
    "signing_key",
    "mail",
    "invitation",
    "onboarding",
    "affiliate",
    "referral",
    "platform_fee",
    "commission",
)


def upgrade() -> None:
    op.add_column("organisation", sa.Column("assigned_account_id", sa.BigInteger(), nullable=True))
    op.add_column("person", sa.Column("address", sa.Text(), nullable=True))
    op.add_column("api_key", sa.Column("made_with", sa.Text(), nullable=True))
    op.create_index("ix_api_key_made_with", "api_key", ["made_with"])
    op.create_index("person_address", "person", ["address"], unique=True)
    # Rows of reads are written after those of later writes: what is newest the moment of the call says, not the id.
    op.drop_index("audit_organisation", "audit")
    op.create_index("audit_organisation", "audit", ["organisation", "at", "id"])
    op.create_index("audit_operation", "audit", ["organisation", "operation", "at", "id"])
    op.create_index("audit_principal", "audit", ["organisation", "principal", "at", "id"])
    # Of several people with one address the first is who signs in with it.
    op.execute(
        "UPDATE person SET address = lower(email) WHERE id IN (SELECT min(id) FROM person WHERE email IS NOT NULL GROUP BY lower(email))"
    )
    op.execute("UPDATE organisation SET assigned_account_id = account_id WHERE mode = 'managed'")
    create_verification()
    create_allowance()
    create_browser_session()
    create_access_grant()
    create_authorization_request()
    create_authorization_code()
    create_refresh_token()
    create_oauth_client()
    create_signing_key()
    create_mail()
    create_invitation()
    create_onboarding()
    create_affiliate()
    create_referral()
    create_platform_fee()
    create_commission()


def downgrade() -> None:
    for name in reversed(TABLES):
        op.drop_table(name)
    op.drop_index("audit_principal", "audit")
    op.drop_index("audit_operation", "audit")
    op.drop_index("audit_organisation", "audit")
    op.create_index("audit_organisation", "audit", ["organisation", "id"])
    op.drop_index("person_address", "person")
    op.drop_index("ix_api_key_made_with", "api_key")
    op.drop_column("api_key", "made_with")
    op.drop_column("person", "address")
    op.drop_column("organisation", "assigned_account_id")


def create_verification() -> None:
    op.create_table(
        "verification",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("code_digest", sa.LargeBinary(), nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("expires_at", REAL, nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("ix_verification_expires_at", "verification", ["expires_at"])


def create_allowance() -> None:
    op.create_table(
        "allowance",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("times", sa.Text(), nullable=False),
        sa.Column("updated", REAL, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_index("ix_allowance_updated", "allowance", ["updated"])


def create_browser_session() -> None:
    op.create_table(
        "browser_session",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("organisation_id", sa.Text(), nullable=True),
        sa.Column("created", REAL, nullable=False),
        sa.Column("seen", REAL, nullable=False),
        sa.Column("expires_at", REAL, nullable=False),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("digest"),
        sa.UniqueConstraint("id"),
    )
    op.create_index("ix_browser_session_expires_at", "browser_session", ["expires_at"])
    op.create_index("ix_browser_session_person_id", "browser_session", ["person_id"])


def create_access_grant() -> None:
    op.create_table(
        "access_grant",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("person_id", sa.Text(), nullable=False),
        sa.Column("organisation_id", sa.Text(), nullable=True),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("client_name", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("created", REAL, nullable=False),
        sa.Column("expires_at", REAL, nullable=False),
        sa.Column("revoked_at", REAL, nullable=True),
        sa.ForeignKeyConstraint(["person_id"], ["person.id"]),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_access_grant_expires_at", "access_grant", ["expires_at"])
    op.create_index("ix_access_grant_organisation_id", "access_grant", ["organisation_id"])
    op.create_index("ix_access_grant_person_id", "access_grant", ["person_id"])


def create_authorization_request() -> None:
    op.create_table(
        "authorization_request",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("expires_at", REAL, nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("ix_authorization_request_expires_at", "authorization_request", ["expires_at"])


def create_authorization_code() -> None:
    op.create_table(
        "authorization_code",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("grant_id", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("used_at", REAL, nullable=True),
        sa.Column("expires_at", REAL, nullable=False),
        sa.ForeignKeyConstraint(["grant_id"], ["access_grant.id"]),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("ix_authorization_code_expires_at", "authorization_code", ["expires_at"])


def create_refresh_token() -> None:
    op.create_table(
        "refresh_token",
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("grant_id", sa.Text(), nullable=False),
        sa.Column("client_id", sa.Text(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("used_at", REAL, nullable=True),
        sa.Column("expires_at", REAL, nullable=False),
        sa.ForeignKeyConstraint(["grant_id"], ["access_grant.id"]),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("ix_refresh_token_expires_at", "refresh_token", ["expires_at"])
    op.create_index("ix_refresh_token_grant_id", "refresh_token", ["grant_id"])


def create_oauth_client() -> None:
    op.create_table(
        "oauth_client",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("metadata_json", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=True),
        sa.Column("created", REAL, nullable=False),
        sa.Column("used", REAL, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_oauth_client_created", "oauth_client", ["created"])


def create_signing_key() -> None:
    op.create_table(
        "signing_key",
        sa.Column("kid", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("private", sa.Text(), nullable=False),
        sa.Column("public", sa.Text(), nullable=False),
        sa.Column("created", REAL, nullable=False),
        sa.Column("retired", REAL, nullable=True),
        sa.PrimaryKeyConstraint("kid"),
        sa.UniqueConstraint("number"),
    )


def create_mail() -> None:
    op.create_table(
        "mail",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("sealed", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("lease", sa.Text(), nullable=True),
        sa.Column("expires_at", REAL, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_mail_due_ms", "mail", ["due_ms"])


def create_invitation() -> None:
    op.create_table(
        "invitation",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation_id", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("invited_by", sa.Text(), nullable=False),
        sa.Column("created", REAL, nullable=False),
        sa.Column("expires_at", REAL, nullable=False),
        sa.ForeignKeyConstraint(["organisation_id"], ["organisation.id"]),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("organisation_id", "address", name="invitation_once"),
    )
    op.create_index("ix_invitation_address", "invitation", ["address"])
    op.create_index("ix_invitation_organisation_id", "invitation", ["organisation_id"])


def create_onboarding() -> None:
    op.create_table(
        "onboarding",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("website", sa.Text(), nullable=True),
        sa.Column("country", sa.Text(), nullable=True),
        sa.Column("operator_type", sa.Text(), nullable=True),
        sa.Column("org_saved_at", REAL, nullable=True),
        sa.Column("managed_chosen_at", REAL, nullable=True),
        sa.Column("pending_reason", sa.Text(), nullable=True),
        sa.Column("template_id", sa.BigInteger(), nullable=True),
        sa.Column("plan_name", sa.Text(), nullable=True),
        sa.Column("plan_saved_at", REAL, nullable=True),
        sa.Column("plan_skipped_at", REAL, nullable=True),
        sa.Column("test_esim", sa.Text(), nullable=True),
        sa.Column("test_esim_at", REAL, nullable=True),
        sa.Column("completed_at", REAL, nullable=True),
        sa.ForeignKeyConstraint(["organisation"], ["organisation.id"]),
        sa.PrimaryKeyConstraint("organisation"),
    )


def create_affiliate() -> None:
    op.create_table(
        "affiliate",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("code", sa.Text(), nullable=False),
        sa.Column("created", REAL, nullable=False),
        sa.ForeignKeyConstraint(["organisation"], ["organisation.id"]),
        sa.PrimaryKeyConstraint("organisation"),
        sa.UniqueConstraint("code"),
    )


def create_referral() -> None:
    op.create_table(
        "referral",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("affiliate", sa.Text(), nullable=False),
        sa.Column("created", REAL, nullable=False),
        sa.ForeignKeyConstraint(["organisation"], ["organisation.id"]),
        sa.ForeignKeyConstraint(["affiliate"], ["organisation.id"]),
        sa.PrimaryKeyConstraint("organisation"),
    )
    op.create_index("ix_referral_affiliate", "referral", ["affiliate"])


def create_platform_fee() -> None:
    op.create_table(
        "platform_fee",
        sa.Column("ref", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("month", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("created", REAL, nullable=False),
        sa.PrimaryKeyConstraint("ref"),
    )
    op.create_index("ix_platform_fee_organisation", "platform_fee", ["organisation"])


def create_commission() -> None:
    op.create_table(
        "commission",
        sa.Column("affiliate", sa.Text(), nullable=False),
        sa.Column("month", sa.Text(), nullable=False),
        sa.Column("currency", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("fees", sa.BigInteger(), nullable=False),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.Column("updated", REAL, nullable=False),
        sa.PrimaryKeyConstraint("affiliate", "month", "currency", "organisation"),
        sa.UniqueConstraint("id"),
    )
