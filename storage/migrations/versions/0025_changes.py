"""Tags of lines, change sets, limits of money, approvals, and packages that are adapted to what was sold."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"
expands = True

LARGE = sa.BigInteger()
REAL: sa.Double[float] = sa.Double()
WHOLE = sa.Integer()
TEXT = sa.Text()
OPEN_STATES = sa.text("state IN ('waiting', 'approved')")
COUNTER_NAMES = ("credential", "period", "subject")
SET_COLUMNS = (
    ("organisation", TEXT), ("state", TEXT), ("action", TEXT), ("change", TEXT), ("lines", TEXT), ("line_count", WHOLE), ("undo_of", TEXT),
    ("actor_kind", TEXT), ("principal", TEXT), ("credential", TEXT), ("approver", TEXT), ("created", REAL), ("position", WHOLE),
    ("digest", TEXT), ("planned_at", REAL), ("expires_at", REAL), ("applied_at", REAL), ("finished_at", REAL), ("planned", WHOLE),
    ("skipped", WHOLE), ("sent", WHOLE), ("done", WHOLE), ("failed", WHOLE), ("unknown", WHOLE), ("not_sent", WHOLE),
    ("irreversible", WHOLE),
    ("cost", LARGE), ("largest_cost", LARGE), ("stop", TEXT), ("charged", TEXT), ("lease", TEXT),
    ("lease_until", REAL), ("served", REAL), ("due", REAL),
)  # fmt: skip
ROW_COLUMNS = (
    ("iccid", TEXT), ("subscriber_id", LARGE), ("account_id", LARGE), ("state", TEXT), ("before", TEXT), ("after", TEXT), ("steps", TEXT),
    ("step", WHOLE), ("irreversible", WHOLE), ("cost", LARGE), ("result", TEXT), ("code", TEXT), ("reason", TEXT), ("sent_at", REAL),
    ("settled_at", REAL),
)  # fmt: skip


def create_adaptations() -> None:
    op.create_table("adapted_offer", sa.Column("id", sa.Text(), nullable=False), sa.PrimaryKeyConstraint("id"))
    op.create_table(
        "package_adaptation",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("data_bytes", sa.BigInteger(), nullable=False),
        sa.Column("days", sa.BigInteger(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("lease", sa.Text(), nullable=True),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("organisation", "key"),
    )
    op.create_index("package_adaptation_due", "package_adaptation", ["due_ms"])


def create_tags() -> None:
    op.create_table(
        "line_tag",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("organisation", "iccid", "tag", "tagged_by")),
        *(sa.Column(name, sa.BigInteger(), nullable=False) for name in ("subscriber_id", "tagged")),
        sa.PrimaryKeyConstraint("organisation", "iccid", "tag"),
        sqlite_with_rowid=False,
    )
    op.create_index("line_tag_lines", "line_tag", ["organisation", "tag", "subscriber_id"])


def create_spending() -> None:
    op.create_table(
        "spending",
        *(sa.Column(name, sa.Text(), nullable=False) for name in COUNTER_NAMES),
        sa.Column("used", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(*COUNTER_NAMES),
    )
    op.create_table(
        "spending_charge",
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("call", *COUNTER_NAMES)),
        sa.Column("amount", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("call", *COUNTER_NAMES),
    )
    op.create_index("spending_charge_period", "spending_charge", ["period"])


def create_approvals() -> None:
    op.create_table(
        "approval",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("principal", sa.Text(), nullable=False),
        sa.Column("credential", sa.Text(), nullable=False),
        sa.Column("operation", sa.Text(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("created", REAL, nullable=False),
        sa.Column("expires_at", REAL, nullable=False),
        sa.Column("decided_by", sa.Text(), nullable=True),
        sa.Column("decided_at", REAL, nullable=True),
        sa.Column("replica", sa.Text(), nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    of_key = ["organisation", "operation", "idempotency_key"]
    op.create_index("approval_open", "approval", of_key, unique=True, sqlite_where=OPEN_STATES, postgresql_where=OPEN_STATES)
    op.create_index("approval_key", "approval", [*of_key, "id"])
    op.create_index("approval_organisation", "approval", ["organisation", "id"])
    op.create_index("approval_state", "approval", ["state", "credential"])
    op.create_index("approval_created", "approval", ["created"])


def create_change_sets() -> None:
    """Two tables and their indexes."""
    op.create_table(
        "change_set",
        sa.Column("id", TEXT, primary_key=True),
        *(sa.Column(name, kind, nullable=False) for name, kind in SET_COLUMNS),
    )
    op.create_index("change_set_organisation", "change_set", ["organisation", "id"])
    op.create_index("change_set_work", "change_set", ["state", "due"])
    op.create_index("change_set_age", "change_set", ["created"])
    op.create_table(
        "change_row",
        sa.Column("change_set", TEXT, primary_key=True),
        sa.Column("number", WHOLE, primary_key=True, autoincrement=False),
        *(sa.Column(name, kind, nullable=False) for name, kind in ROW_COLUMNS),
    )
    op.create_index("change_row_state", "change_row", ["change_set", "state", "number"])
    op.create_index("change_row_line", "change_row", ["change_set", "iccid", "number"])


def upgrade() -> None:
    create_adaptations()
    create_tags()
    create_spending()
    create_approvals()
    create_change_sets()


def downgrade() -> None:
    """What was spent is not known any more, and every change set goes: limits begin anew."""
    if op.get_bind().scalar(sa.text("SELECT EXISTS (SELECT 1 FROM package_adaptation)")):
        raise RuntimeError("packages are still to get the limits of what was sold; without this schema they would keep their template's")
    if op.get_bind().scalar(sa.text("SELECT EXISTS (SELECT 1 FROM approval WHERE state IN ('waiting', 'approved'))")):
        raise RuntimeError("calls wait for an approval or are being executed; let them end, or decline them, before the downgrade")
    op.drop_index("package_adaptation_due", "package_adaptation")
    op.drop_table("package_adaptation")
    op.drop_table("adapted_offer")
    op.drop_table("line_tag")
    op.drop_index("spending_charge_period", "spending_charge")
    op.drop_table("spending_charge")
    op.drop_table("spending")
    op.drop_table("approval")
    op.drop_table("change_row")
    op.drop_table("change_set")
