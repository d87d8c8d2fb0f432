"""The read model of fleets: lines, packages, use, problems, and how far each fleet has been read; and what was done to lines through us."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"
expands = True

LARGE = sa.BigInteger()
REAL: sa.Double[float] = sa.Double()
WHOLE = sa.Integer()
TEXT = sa.Text()

SYNC_COLUMNS = (
    ("organisation", TEXT), ("identity", TEXT), ("instance", TEXT), ("began", REAL), ("ended", LARGE), ("listed", REAL),
    ("listing_seconds", REAL), ("list_due", REAL), ("cut", WHOLE), ("parts", TEXT), ("served", REAL), ("due", REAL), ("lease", TEXT),
    ("lease_until", REAL), ("backoff_until", REAL), ("failures", WHOLE), ("calls", LARGE), ("error", TEXT), ("error_at", REAL),
)  # fmt: skip
LINE_COLUMNS = (
    ("fleet", LARGE), ("subscriber_id", LARGE), ("version", WHOLE), ("written", REAL), ("gone", REAL), ("iccid", TEXT), ("numbers", TEXT),
    ("account_id", LARGE), ("status", TEXT), ("status_since", REAL), ("sim_status", TEXT), ("esim", WHOLE), ("issued", REAL),
    ("activated", REAL), ("last_used", REAL), ("mcc", WHOLE), ("mnc", WHOLE), ("country", TEXT), ("data_allowed", WHOLE),
    ("calls_out_allowed", WHOLE), ("calls_in_allowed", WHOLE), ("sms_out_allowed", WHOLE), ("sms_in_allowed", WHOLE),
    ("speed_limit", WHOLE), ("steering_list", LARGE), ("balance", LARGE), ("pays", TEXT), ("search", TEXT), ("digest", LARGE),
    ("rank", WHOLE), ("due", REAL), ("read", REAL), ("usage_first", WHOLE), ("usage_last", WHOLE), ("usage_read", REAL),
    ("package_state", TEXT), ("package_ends", REAL), ("data_left", LARGE), ("data_limit", LARGE), ("judged", REAL), ("judge_due", REAL),
    ("missed", WHOLE), ("sighted", REAL), ("asked", REAL), ("radio", TEXT),
)  # fmt: skip
PACKAGE_COLUMNS = (
    ("fleet", LARGE), ("subscriber_id", LARGE), ("series", WHOLE), ("id", LARGE), ("template_id", LARGE), ("zone_id", LARGE),
    ("active", WHOLE), ("starts", REAL), ("ends", REAL), ("data_limit", LARGE), ("data_used", LARGE), ("price", LARGE), ("facts", TEXT),
)  # fmt: skip
USAGE_COLUMNS = (
    ("fleet", LARGE), ("subscriber_id", LARGE), ("day", WHOLE), ("mcc", WHOLE), ("mnc", WHOLE), ("kind", WHOLE), ("quantity", LARGE),
    ("covered", LARGE), ("network_cost", LARGE), ("usage_income", LARGE),
)  # fmt: skip
DAY_COLUMNS = (
    ("fleet", LARGE), ("day", WHOLE), ("mcc", WHOLE), ("mnc", WHOLE), ("kind", WHOLE), ("uses", LARGE), ("free", LARGE),
    ("network_cost", LARGE), ("usage_income", LARGE),
)  # fmt: skip
MONEY_COLUMNS = (
    ("fleet", LARGE), ("subscriber_id", LARGE), ("block", WHOLE), *((f"cost_{place}", LARGE) for place in range(14)),
    *((f"income_{place}", LARGE) for place in range(14)),
)  # fmt: skip
NETWORK_COLUMNS = (("fleet", LARGE), ("mcc", WHOLE), ("mnc", WHOLE), ("country", TEXT), ("operator", TEXT))
PROBLEM_COLUMNS = (
    ("fleet", LARGE), ("subscriber_id", LARGE), ("cause", TEXT), ("place", WHOLE), ("since", REAL), ("money", LARGE), ("evidence", TEXT),
    ("opened", REAL), ("seen", REAL), ("closed", REAL),
)  # fmt: skip
FIGURE_COLUMNS = (
    ("fleet", LARGE), ("subscriber_id", LARGE), ("made", WHOLE), ("churn", WHOLE), ("churn_signs", TEXT), ("line_days", WHOLE),
    ("anomalies", TEXT), ("coverage", TEXT), ("mcc", WHOLE), ("mnc", WHOLE), ("outside_bytes", LARGE), ("outside_cost", LARGE),
    ("outside_income", LARGE), ("coverage_signs", TEXT), ("sponsor", LARGE), ("main_mcc", WHOLE), ("main_mnc", WHOLE), ("main_at", REAL),
    ("profile", TEXT), ("plan", TEXT), ("plan_saving", LARGE), ("plan_now", LARGE), ("plan_income", LARGE), ("plan_cost", LARGE),
    ("entry_country", TEXT), ("entry_at", REAL), ("entry_facts", TEXT),
)  # fmt: skip
LINE_INDEXES = (
    ("fleet_line_work", ["fleet", "rank", "due"]),
    ("fleet_line_judge", ["fleet", "judge_due"]),
    ("fleet_line_iccid", ["iccid"]),
    ("fleet_line_used", ["fleet", "gone", "last_used"]),
)
PROBLEM_INDEXES = (
    ("fleet_problem_open", ["cause", "place", "money"]),
    ("fleet_problem_lines", ["subscriber_id", "cause", "place", "money"]),
)
KEYS = {
    "fleet_line": ("fleet", "subscriber_id"),
    "fleet_line_detail": ("fleet", "subscriber_id"),
    "fleet_package": ("fleet", "subscriber_id", "series", "id"),
    "fleet_usage": ("fleet", "subscriber_id", "day", "mcc", "mnc", "kind"),
    "fleet_month": ("fleet", "subscriber_id", "day", "mcc", "mnc", "kind"),
    "fleet_line_money": ("fleet", "subscriber_id", "block"),
    "fleet_day": ("fleet", "day", "mcc", "mnc", "kind"),
    "fleet_network": ("fleet", "mcc", "mnc"),
    "fleet_problem": ("fleet", "subscriber_id", "cause"),
    "fleet_figure": ("fleet", "subscriber_id"),
}


def create(name: str, columns: Sequence[tuple[str, sa.BigInteger | sa.Double[float] | sa.Integer | sa.Text]]) -> None:
    made = [sa.Column(column, kind, nullable=False) for column, kind in columns]
    op.create_table(name, *made, sa.PrimaryKeyConstraint(*KEYS[name]), sqlite_with_rowid=False)


def create_names() -> None:
    """Whether an organisation has names kept, and whose were erased."""
    op.create_table(
        "fleet_setting", sa.Column("organisation", sa.Text(), primary_key=True), sa.Column("personal", sa.Integer(), nullable=False)
    )
    op.create_table(
        "fleet_erasure",
        sa.Column("organisation", sa.Text(), primary_key=True),
        sa.Column("subscriber_id", sa.BigInteger(), primary_key=True, autoincrement=False),
    )
    op.create_table("fleet_erased_buyer", *(sa.Column(name, TEXT, primary_key=True) for name in ("organisation", "digest")))
    op.create_table(
        "fleet_erasure_key", sa.Column("organisation", sa.Text(), primary_key=True), sa.Column("sealed", sa.Text(), nullable=False)
    )


def upgrade() -> None:
    op.create_table(
        "fleet_sync",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        *(sa.Column(name, kind, nullable=False) for name, kind in SYNC_COLUMNS),
    )
    op.create_index("fleet_sync_identity", "fleet_sync", ["organisation", "identity", "ended"], unique=True)
    op.create_index("fleet_sync_due", "fleet_sync", ["ended", "due"])
    create_names()
    create("fleet_line", LINE_COLUMNS)
    for name, columns in LINE_INDEXES:
        op.create_index(name, "fleet_line", columns)
    op.create_table(
        "fleet_line_detail",
        sa.Column("fleet", sa.BigInteger(), nullable=False),
        sa.Column("subscriber_id", sa.BigInteger(), nullable=False),
        sa.Column("facts", sa.Text(), nullable=False),
        *(sa.Column(name, sa.Text(), nullable=True) for name in ("name", "company", "email", "phone")),
        sa.PrimaryKeyConstraint(*KEYS["fleet_line_detail"]),
        sqlite_with_rowid=False,
    )
    create("fleet_package", PACKAGE_COLUMNS)
    create("fleet_usage", USAGE_COLUMNS)
    create("fleet_month", USAGE_COLUMNS)
    create("fleet_line_money", MONEY_COLUMNS)
    create("fleet_day", DAY_COLUMNS)
    create("fleet_network", NETWORK_COLUMNS)
    create("fleet_problem", PROBLEM_COLUMNS)
    for name, columns in PROBLEM_INDEXES:
        op.create_index(name, "fleet_problem", ["fleet", "closed", *columns])
    create("fleet_figure", FIGURE_COLUMNS)
    op.create_index("fleet_figure_entry", "fleet_figure", ["fleet", "entry_at"])
    op.create_table(
        "line_steering",
        sa.Column("organisation", sa.Text(), nullable=False),
        sa.Column("iccid", sa.Text(), nullable=False),
        sa.Column("list_id", sa.BigInteger(), nullable=True),
        sa.Column("assigned", REAL, nullable=True),
        sa.Column("pushed", REAL, nullable=True),
        sa.Column("changed", REAL, nullable=False),
        sa.PrimaryKeyConstraint("organisation", "iccid"),
    )
    op.create_index("ix_line_steering_changed", "line_steering", ["changed"])
    op.create_index("line_steering_latest", "line_steering", ["organisation", "changed"])
    op.create_table(
        "line_change",
        *(sa.Column(name, TEXT, primary_key=True) for name in ("organisation", "iccid", "kind")),
        sa.Column("value", TEXT, nullable=False),
        sa.Column("at", REAL, nullable=False),
        *(sa.Column(name, TEXT, nullable=False) for name in ("actor_kind", "actor", "key_id")),
    )
    op.create_index("ix_line_change_at", "line_change", ["at"])


def downgrade() -> None:
    erased = ("fleet_erasure", "fleet_erased_buyer", "fleet_erasure_key")
    for name in (*KEYS, *erased, "fleet_setting", "fleet_sync", "line_steering", "line_change"):
        op.drop_table(name)
