"""The charging system's own log as the checker reads it: each writing call, and for whose key it was sent."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from tests.harness.network_process import Drawn, Given, NetworkProcess
from tests.kill.errands import KilledErrand
from tests.network_facts import CHANGE, DRAW
from tests.simulation.provider import Dispatch

NOBODY = 0
NOTHING_GIVEN = Given("", 0)


class Owned(NamedTuple):
    """A package that was drawn, and the errand that drew it."""

    errand: KilledErrand | None
    given: Given


def dispatches(network: NetworkProcess, errands: Sequence[KilledErrand], since: int) -> list[Dispatch]:
    """Every writing call since then, in order.

    A draw is told by its days, or by its account and template; a removal by its package, and the freeing of a SIM by the removal before
    it. Which of a key's calls sent a draw cannot be told, so that all of them count as sent by the call that stands for the errand.
    """
    wanting = {errand.asks: errand for errand in errands}
    packages = {given.package: Owned(wanting.get(drawn), given) for drawn, all in network.given.items() for given in all}
    removed: dict[str, Owned] = {}
    given = {drawn: iter(sorted(all, key=package_of)) for drawn, all in network.given.items()}
    found: list[Dispatch] = []
    for number, call in sorted(network.log.items()):
        if number <= since:
            continue
        if call["method"] == DRAW:
            found.append(draw(call, wanting, given))
        else:
            found.append(give_back(call, packages, removed, network))
    return found


def package_of(given: Given) -> int:
    return given.package


def draw(call: Mapping[str, Any], wanting: Mapping[Drawn, KilledErrand], given: Mapping[Drawn, Iterator[Given]]) -> Dispatch:
    """A draw with what it gave; a package that nobody has seen has a name of its own."""
    asked = call["payload"]
    drawn = Drawn(asked["accountForSubs"], asked["packageTemplateId"], asked.get("validityPeriod"))
    errand = wanting.get(drawn)
    by = NOBODY if errand is None else errand.call
    if not took_effect(call):
        return entry_of(call, by, drawn, None)
    return entry_of(call, by, drawn, next(given.get(drawn, iter(())), Given(f"unseen-{call['number']}", 0)))


def give_back(call: Mapping[str, Any], packages: Mapping[int, Owned], removed: dict[str, Owned], network: NetworkProcess) -> Dispatch:
    """The removal of a package or the freeing of a SIM; it is known who sent it where only one call of the key may have."""
    if call["method"] == CHANGE:
        owned = removed.get(network.sims[call["payload"]["simId"]])
    else:
        owned = packages.get(call["payload"])
        if owned is not None:
            removed[owned.given.iccid] = owned
    if owned is None or owned.errand is None:
        return entry_of(call, NOBODY, None, NOTHING_GIVEN)
    errand = owned.errand
    return entry_of(call, errand.confirmed[0] if len(errand.confirmed) == 1 else errand.call, errand.asks, owned.given)


def entry_of(call: Mapping[str, Any], by: int, drawn: Drawn | None, given: Given | None) -> Dispatch:
    return Dispatch(
        at=datetime.fromisoformat(call["at"]).timestamp(),
        by=by,
        method=call["method"],
        account=None if drawn is None else drawn.account,
        template=None if drawn is None else drawn.template,
        effect=took_effect(call),
        iccid=None if given is None else given.iccid,
        package=None if given is None else given.package,
        fault=" ".join(call["faults"]) or None,
        code=call["code"],
    )


def took_effect(call: Mapping[str, Any]) -> bool:
    return call["code"] == 0 and "drop_before" not in call["faults"]
