"""Change sets: one decision about many lines, with a row for each."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0026"
expands = True

LARGE = sa.BigInteger()
REAL: sa.Double[float] = sa.Double()
WHOLE = sa.Integer()
TEXT = sa.Text()

SET_COLUMNS = (
    ("organisation", TEXT), ("state", TEXT), ("action", TEXT), ("change", TEXT), ("lines", TEXT), ("line_count", WHOLE), ("undo_of", TEXT),
    ("actor_kind", TEXT), ("principal", TEXT), ("credential", TEXT), ("approver", TEXT), ("created", REAL), ("position", WHOLE),
    ("digest", TEXT), ("planned_at", REAL), ("expires_at", REAL), ("applied_at", REAL), ("finished_at", REAL), ("planned", WHOLE),
    ("skipped", WHOLE), ("sent", WHOLE), ("done", WHOLE), ("failed", WHOLE), ("unknown", WHOLE), ("not_sent", WHOLE),
    ("irreversible", WHOLE), ("cost", LARGE), ("stop", TEXT), ("lease", TEXT), ("lease_until", REAL), ("served", REAL), ("due", REAL),
)  # fmt: skip
ROW_COLUMNS = (
    ("iccid", TEXT), ("subscriber_id", LARGE), ("account_id", LARGE), ("state", TEXT), ("before", TEXT), ("after", TEXT), ("steps", TEXT),
    ("step", WHOLE), ("irreversible", WHOLE), ("cost", LARGE), ("result", TEXT), ("code", TEXT), ("reason", TEXT), ("sent_at", REAL),
    ("settled_at", REAL),
)  # fmt: skip


def upgrade() -> None:
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


def downgrade() -> None:
    """Both tables go, with every set."""
    op.drop_table("change_row")
    op.drop_table("change_set")
