"""Answers on their way in pieces: each holds a connection to the other side until its reader has read it."""

from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

from registry.errors import QuotaExceeded
from registry.policy import stamp

MOST_OF_ONE = 4
MOST_OF_ALL = 64
"""A third of the connections there are: slow readers never keep others from asking."""
CHATS_OF_ONE, CHATS_OF_ALL = 64, 256
"""Streams of events: half of the connections that a server takes, and what one organisation may have of them."""
SECONDS = 5


class Passing:
    """Counts them, by organisation."""

    def __init__(self, of_one: int = MOST_OF_ONE, of_all: int = MOST_OF_ALL) -> None:
        self.of_one, self.of_all = of_one, of_all
        self._under_way: Counter[str] = Counter()

    def has_room(self, owner: str) -> bool:
        """Whether one more may begin."""
        return self._under_way[owner] < self.of_one and self._under_way.total() < self.of_all

    @contextmanager
    def one_more(self, owner: str) -> Generator[None]:
        """For as long as it takes."""
        self._under_way[owner] += 1
        try:
            yield
        finally:
            self._under_way[owner] -= 1
            self._under_way += Counter[str]()  # forgets the owners that have none


def no_room(passing: Passing, now: float, upgrade_url: str) -> QuotaExceeded:
    """Too many at once."""
    return QuotaExceeded(
        f"{passing.of_one} long answers of your organisation, or {passing.of_all} of all, are being read; finish one, or ask with limit",
        code="rate_limited",
        limit=passing.of_one,
        used=passing.of_one,
        reset_at=stamp(now + SECONDS),
        retry_after=SECONDS,
        upgrade_url=upgrade_url,
    )
