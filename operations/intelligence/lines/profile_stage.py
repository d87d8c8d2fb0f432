"""How far an eSIM profile has come, by the words of its provider: an open set, of which those of GSMA SGP.22 ES2+ are known."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from clients.ocs.wire.subscriber import ProviderStatus
from operations.intelligence.upstream_text import plain
from operations.services.network.utc_moment import seconds_of

Stage = Literal["not_installed", "disabled", "deleted"]
STAGES: Mapping[str, Stage] = {
    **dict.fromkeys(("AVAILABLE", "ALLOCATED", "LINKED", "CONFIRMED", "RELEASED", "DOWNLOADED", "UNAVAILABLE", "ERROR"), "not_installed"),
    **dict.fromkeys(("INSTALLED", "DISABLE", "DISABLED"), "disabled"),
    **dict.fromkeys(("DELETE", "DELETED"), "deleted"),
}


class ProfileNow(NamedTuple):
    """What stands in the way. `status` is the provider's word."""

    stage: Stage
    status: str
    since: float | None


def current_row(rows: Sequence[ProviderStatus]) -> ProviderStatus | None:
    """The row without an end; of several, or of none, the newest."""
    standing = [row for row in rows if row.get("end") is None]
    return max(standing or rows, key=lambda row: row.get("start", ""), default=None)


def profile_now(rows: Sequence[ProviderStatus], *, seen: float | None, esim: bool) -> ProfileNow | None:
    """What the provider's last word stands for; nothing where it is well, unknown, a plastic card's, or disproved.

    Choice: a line that was seen on a network after that word had its profile enabled then, and the provider has not said so yet.
    """
    row = current_row(rows) if esim else None
    stage = None if row is None else STAGES.get(row.get("status", "").upper())
    if row is None or stage is None:
        return None
    since = seconds_of(row.get("start"))
    disproved = seen is not None and since is not None and seen > since
    return None if disproved else ProfileNow(stage, plain(row.get("status"), 40), since)
