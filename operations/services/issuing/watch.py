"""For how long nothing was seen that a row could have drawn, by clocks that nobody sets.

Wall clocks are set, and those of two processes differ: fifteen minutes between two of their readings may have been five. So each process
measures with its own monotonic clock, from its own first look on, and adds what the row says that was measured before that look. The
sum is never more than the time that has passed, whoever looks in between; what passes while nobody looks is not counted.
"""

from storage.issuing.issuance import IssuanceRow

MOST = 10_000


class Watch:
    """When each row was first found clear by us, and for how long it had been clear then.

    Its `clear_since` names the stretch: after another one it begins anew.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, str], tuple[float, float, float]] = {}

    def seconds(self, row: IssuanceRow, *, at: float, began: float) -> float:
        """It is clear, by what was read `at` a time of the wall and from `began` on; the seconds for which it has been."""
        key, since = (row.organisation, row.key), row.clear_since or at
        found = self._first.get(key)
        if found is None or found[0] != since:
            if len(self._first) >= MOST:  # others have settled most of them; what is forgotten is watched anew
                self._first.clear()
            found = self._first[key] = since, began, row.clear_seconds or 0.0
        return max(row.clear_seconds or 0.0, found[2] + began - found[1])

    def forget(self, row: IssuanceRow) -> None:
        """It is not clear, or nobody could see."""
        self._first.pop((row.organisation, row.key), None)
