"""What a trial is given."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class TrialPlan:
    """`place`: an empty folder; `seconds`: of the long parts; `rate`: calls a second that need the charging system while it hangs."""

    place: Path
    seconds: float
    rate: float = 100.0
    seed: int = 1

    @property
    def drain(self) -> int:
        """Seconds that a server goes on after SIGTERM: production's, or fewer in a short trial."""
        return 5 if self.seconds >= 20 else 1
