"""What the running server says of the outside systems: `doctor` reads its metrics, where they are on."""

import re
from http.client import HTTPConnection, HTTPException

from transports.cli.finding import Finding, Note
from transports.settings import Settings

SECONDS = 2.0
SAMPLE = re.compile(r'^reseller_upstream_(waiting|open|open_organisations)\{system="(\w+)"\} ([0-9.]+)$', re.MULTILINE)
PORT = "set SERVICE_METRICS_PORT to that of a running server; each tells of its own calls"
WAY = "calls are sent again by themselves as soon as it answers; if this machine reaches it, ask its provider"


def outages(settings: Settings) -> list[Finding]:
    """One finding for each outside system that the server sends no calls to; nothing where no metrics are served."""
    if not settings.metrics_port:
        return []
    text = metrics_text(settings)
    if text is None:
        return [Note("outages", f"nothing serves metrics at {settings.metrics_host}:{settings.metrics_port}: {PORT}")]
    told: dict[str, dict[str, float]] = {}
    for name, system, value in SAMPLE.findall(text):
        told.setdefault(system, {})[name] = float(value)
    found = [finding for system, values in told.items() for finding in of_system(system.replace("_", " "), values)]
    return found or [Finding("outages", "none: the process that was asked sends its calls to every outside system")]


def of_system(system: str, values: dict[str, float]) -> list[Finding]:
    """How one stands."""
    waiting = f"{values.get('waiting', 0):g} requests wait for it"
    if values.get("open"):
        return [Finding("outages", f"the {system} does not answer: the running server refuses calls to it; {waiting}", WAY)]
    if values.get("open_organisations"):
        some = f"{values['open_organisations']:g} organisations"
        return [Note("outages", f"the {system} does not answer the calls of {some}, which are refused; others go on; {waiting}")]
    return []


def metrics_text(settings: Settings) -> str | None:
    """What the server tells Prometheus; None where nobody answers."""
    connection = HTTPConnection(settings.metrics_host, settings.metrics_port, timeout=SECONDS)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode()
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()
