"""The labels of intents from before: every program writes those of new ones by now.

A release that writes none cannot run beside this one: 1.0.0 knows no schema but its own, and whatever follows it knows 0029.
"""

from alembic import op

revision = "0030"
down_revision = "0029"
expands = True

ENTRIES = {
    "sqlite": "json_each(intent.details) AS entry",
    "postgresql": "json_each_text(intent.details::json) AS entry(key, value)",
}


def upgrade() -> None:
    op.execute(
        "INSERT INTO intent_label (organisation, value, intent, key) "
        f"SELECT intent.organisation, entry.value, intent.id, entry.key FROM intent, {ENTRIES[op.get_bind().dialect.name]} "
        "WHERE intent.details != '{}' ON CONFLICT DO NOTHING"
    )


def downgrade() -> None:
    """They stay: each is right on the version before, too."""
