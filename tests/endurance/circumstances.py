"""Where and when a run was made."""

from datetime import UTC, datetime
from typing import Any

from benchmarks.__main__ import revision
from benchmarks.processes import machine


def circumstances() -> dict[str, Any]:
    """What a reader must know of the machine and of the revision."""
    return {"date": datetime.now(UTC).strftime("%Y-%m-%d"), "machine": machine(), "revision": revision()}
