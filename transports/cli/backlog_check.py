"""Whether the work of a PostgreSQL database gets done: `doctor` looks at what is late."""

from registry.clock import SystemClock
from registry.errors import Refusal
from storage.backlog import backlog
from transports.cli.finding import Finding
from transports.settings import Settings

LATE_SECONDS = 120.0
WAY = "run a worker, or one more (reseller worker); if one runs, its log says what hinders it"


def work(settings: Settings) -> Finding:
    """What waits for longer than two minutes after it was due."""
    try:
        found = backlog(settings.store_url, now=SystemClock().now())
    except Refusal as error:
        return Finding("work", f"PostgreSQL: {error}", "check SERVICE_DATABASE_URL, and that the server runs")
    running = f"servers and workers that run: {found.processes}"
    late = [f"{kind} for {seconds:.0f} s" for kind, seconds in sorted(found.late.items()) if seconds > LATE_SECONDS]
    if late:
        return Finding("work", f"late: {', '.join(late)}; {running}", WAY)
    return Finding("work", f"nothing is late; {running}")
