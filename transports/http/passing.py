"""Answers on their way in pieces: each holds a connection to the other side until its reader has read it."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from registry.errors import QuotaExceeded
from registry.policy import stamp

MOST_OF_ONE = 4
MOST_OF_ALL = 64
"""A third of the connections there are: slow readers never keep others from asking."""
SECONDS = 5


class Passing:
    """Counts them, by organisation."""

    def __init__(self) -> None:
        self._under_way: Counter[str] = Counter()

    def has_room(self, owner: str) -> bool:
        """Whether one more may begin."""
        return self._under_way[owner] < MOST_OF_ONE and self._under_way.total() < MOST_OF_ALL

    @contextmanager
    def one_more(self, owner: str) -> Generator[None]:
        """For as long as it takes."""
        self._under_way[owner] += 1
        try:
            yield
        finally:
            self._under_way[owner] -= 1
            self._under_way += Counter[str]()  # forgets the owners that have none


def no_room(now: float, upgrade_url: str) -> QuotaExceeded:
    """Too many at once."""
    return QuotaExceeded(
        f"{MOST_OF_ONE} long answers of your organisation, or {MOST_OF_ALL} of all, are being read; finish reading one, or ask with limit",
        code="rate_limited",
        limit=MOST_OF_ONE,
        used=MOST_OF_ONE,
        reset_at=stamp(now + SECONDS),
        retry_after=SECONDS,
        upgrade_url=upgrade_url,
    )
