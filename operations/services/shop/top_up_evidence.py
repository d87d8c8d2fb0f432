"""What a line's packages tell of a top-up whose answer was lost. It proves or it does not; nothing is ever sent again.

Why a package is believed to be the top-up's, all of it together: it was not on the line before the call was sent (`Sent.packages`, read
right before the commit), it is of the template that was asked for, no series made it, it was assigned when the call may have taken
effect, and nothing else explains it: no other top-up of the order, not the order itself, no operation of ours that put it there
(storage/issuing/placed.py). It must be the only one, and no other top-up of the template may be unknown at the same time.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import orjson
from typing_extensions import TypedDict

from clients.ocs.wire.package import Package
from operations.services.issuing.evidence import LATEST, SKEW, Fit, id_of, moment_of, template_of
from operations.services.network.package_state import starts_at


class Sent(NamedTuple):
    """What was noted when a top-up was sent, and what was seen since.

    `clear_since`: when the line was first read without a package that could be it. `seen`: the one package that may be it.
    """

    at: float
    packages: frozenset[int]
    clear_since: float | None = None
    seen: int | None = None


class Verdict(NamedTuple):
    """`found`: one package is it. `clear`: none can be. `unclear`: it cannot be told from this reading."""

    kind: Literal["found", "clear", "unclear"]
    package: int | None = None


class Noted(TypedDict):
    """The same, as the row keeps it."""

    at: float
    packages: list[int]
    clear_since: float | None
    seen: int | None


UNCLEAR = Verdict("unclear")


def written(sent: Sent) -> str:
    """For the row."""
    noted: Noted = {"at": sent.at, "packages": sorted(sent.packages), "clear_since": sent.clear_since, "seen": sent.seen}
    return orjson.dumps(noted).decode()


def read_sent(text: str) -> Sent:
    """From the row."""
    noted: Noted = orjson.loads(text)
    return Sent(noted["at"], frozenset(noted["packages"]), noted["clear_since"], noted["seen"])


def judge(packages: Sequence[Package], sent: Sent, template_id: int, explained: frozenset[int]) -> Verdict:
    """What one reading of the line says.

    An empty list proves nothing: the charging system answers one where it is in trouble as well, and a line that was topped up had the
    order's package. So a reading counts only where it still shows something that was there before.
    """
    ids = {id_of(package) for package in packages}
    if not ids & sent.packages:
        return UNCLEAR
    news = [package for package in packages if id_of(package) not in sent.packages | explained]
    fits = [(fit(package, sent, template_id), id_of(package)) for package in news]
    shows = [id for fitted, id in fits if fitted == "shows"]
    kinds = {fitted for fitted, _ in fits}
    if len(shows) == 1 and "unreadable" not in kinds:
        return Verdict("found", shows[0])
    return UNCLEAR if kinds & {"shows", "similar", "unreadable"} else Verdict("clear")


def fit(package: Package, sent: Sent, template_id: int) -> Fit:
    """Whether a new package may be the one that was sent for."""
    template = template_of(package)
    if template is None or id_of(package) is None:
        return "unreadable"
    if template != template_id:
        return "other"
    if package.get("recurringPackage") is not None:
        return "similar"  # a series made it, and top-ups begin none
    assigned, start = moment_of(package.get("tsassigned")), starts_at(package)
    if assigned is not None and not in_time(assigned, sent):
        return "similar"
    # What was sent waits for its first use, which on a line that is online may be the very second.
    return "similar" if start is not None and assigned is not None and start < assigned else "shows"


def in_time(moment: datetime, sent: Sent) -> bool:
    """Whether the call may have taken effect then, by the charging system's clock."""
    at = datetime.fromtimestamp(sent.at, UTC)
    return at - SKEW <= moment <= at + LATEST + SKEW
