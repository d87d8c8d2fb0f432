"""Whether the history of a PostgreSQL database has room for what comes: `doctor` looks at its partitions."""

from dataclasses import asdict
from datetime import UTC, datetime

from registry.errors import Refusal
from storage.partition_state import partition_state
from transports.cli.finding import Finding, Note
from transports.settings import Settings

WAY = "run a worker: it makes the partitions and moves the rows within minutes; if one runs, its log says what hinders it"


def history(settings: Settings) -> Finding:
    """The months that are ready."""
    try:
        state = partition_state(settings.store_url)
    except Refusal as error:
        return Finding("history", f"PostgreSQL: {error}", "check SERVICE_DATABASE_URL, and that the server runs")
    if state.without:
        rows = ", ".join(f"{rows} of {name}" for name, rows in state.without.items())
        return Finding("history", f"rows without a partition: {rows}", WAY)
    if state.whole:
        return Note("history", f"no partitions yet: {', '.join(state.whole)}; a worker makes them once every process has this version")
    return Finding("history", f"partitions up to {datetime.fromtimestamp(min(state.until.values()), UTC):%Y-%m-%d}")


def kept(settings: Settings) -> Finding:
    """How long each kind of history is kept; what the settings do not name is kept for ever."""
    days = ", ".join(f"{kind.replace('_', ' ')} {days} days" for kind, days in asdict(settings.history_days).items() if days)
    return Finding("retention", f"{days}; the rest for ever" if days else "all for ever")
