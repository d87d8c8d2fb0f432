"""What a process has counted since it began: plain numbers, so that nobody pays for metrics who does not read them."""

from collections import Counter

from registry.latency import Histogram

BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0)


class Tally:
    """Attempts by class of outcome and by seconds, and when each chore last succeeded."""

    def __init__(self, chores: tuple[str, ...] = ()) -> None:
        self.attempts = Counter[str]()
        self.seconds = Histogram(BOUNDS)
        self.chores = dict.fromkeys(chores, 0.0)

    def attempt(self, outcome: str, seconds: float) -> None:
        """One POST has ended."""
        self.attempts[class_of(outcome)] += 1
        self.seconds.observe(seconds)

    def chore(self, name: str, at: float) -> None:
        """A chore has succeeded."""
        self.chores[name] = at


def class_of(outcome: str) -> str:
    """A label out of few: receivers choose among 500 statuses."""
    return f"{outcome[:8]}xx" if outcome.startswith("status:") else outcome
