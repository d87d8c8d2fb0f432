"""Which lines a value names: kept so that a fleet of a hundred thousand lines is looked through once, and not at every call.

Each part is made when it is first asked for. Whoever changes what it is made of says so: a number, an account, a SIM's status.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

from clients.sandbox.ocs.entities import Line

BEHIND = "~"
"""Sorts behind every digit and letter of an identifier."""
CURRENT: Mapping[str, Callable[[Line], Iterable[str | int]]] = {
    "iccid": lambda line: (line.iccid,),
    "imsi": lambda line: (line.imsi,),
    "msisdn": lambda line: (line.number,),
    "multiImsi": lambda line: (row.imsi for row in line.multi_imsis if row.end is None),
    "activationCode": lambda line: (line.sim.activation_code,),
    "sim": lambda line: (line.sim.id,),
}
"""The values that name a line now, by the kind of identifier."""
EVER: Mapping[str, Callable[[Line], Iterable[str]]] = {
    "imsiPrefix": lambda line: (row.imsi for row in line.imsis),
    "iccidPrefix": lambda line: (row.iccid for row in line.imsis),
    "msisdnPrefix": lambda line: (row.number for row in line.numbers),
}
"""The values that a line has or had, by the filter that looks for their beginning."""
Sims = Counter[tuple[int, str]]


@dataclass(slots=True)
class Lookup:
    """Look-ups of one world's lines."""

    named: dict[str, dict[str | int, int]] = field(default_factory=dict[str, dict[str | int, int]])
    sorted: dict[str, list[tuple[str, int]]] = field(default_factory=dict[str, list[tuple[str, int]]])
    accounts: dict[int, list[Line]] = field(default_factory=dict[int, list[Line]])
    free: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """Heaps of the ids of an account's free lines; one that is not free any more may still be in it."""
    sims: dict[int, Sims] = field(default_factory=dict[int, Sims])

    def line(self, lines: Mapping[int, Line], kind: str, value: str | int) -> Line | None:
        """The line that has this value now; of several the one with the lowest id."""
        if kind not in self.named:
            values, found = CURRENT[kind], dict[str | int, int]()
            for line in lines.values():
                for each in values(line):
                    found.setdefault(each, line.id)
            self.named[kind] = found
        id = self.named[kind].get(value)
        return None if id is None else lines[id]

    def with_prefix(self, lines: Mapping[int, Line], kind: str, prefix: str) -> list[Line]:
        """The lines that have or had a value that begins so, lowest id first."""
        if kind not in self.sorted:
            values = EVER[kind]
            self.sorted[kind] = sorted((each, line.id) for line in lines.values() for each in values(line))
        rows = self.sorted[kind]
        first, end = bisect_left(rows, (prefix, 0)), bisect_left(rows, (prefix + BEHIND, 0))
        return [lines[id] for id in sorted({id for _, id in rows[first:end]})]

    def of_account(self, lines: Mapping[int, Line], account: int) -> Sequence[Line]:
        """An account's lines, lowest id first."""
        if not self.accounts:
            for line in lines.values():
                self.accounts.setdefault(line.account_id, []).append(line)
        return self.accounts.get(account, [])

    def first_free(self, lines: Mapping[int, Line], account: int) -> Line | None:
        """The account's line with the lowest id whose SIM is free."""
        if account not in self.free:
            self.free[account] = [line.id for line in self.of_account(lines, account) if line.sim.status == "FREE"]
        heap = self.free[account]
        while heap and lines[heap[0]].sim.status != "FREE":
            heappop(heap)
        return lines[heap[0]] if heap else None

    def esims(self, lines: Mapping[int, Line], account: int) -> Sims:
        """How many eSIMs of an account there are, by sponsor and status."""
        if account not in self.sims:
            self.sims[account] = Counter(
                (line.sim.sponsor_id, line.sim.status) for line in self.of_account(lines, account) if line.sim.esim
            )
        return self.sims[account]

    def number_changed(self, line: Line) -> None:
        """A line has another phone number than before."""
        before, after = line.numbers[-2].number, line.numbers[-1].number
        if "msisdn" in self.named:
            if self.named["msisdn"].get(before) == line.id:
                del self.named["msisdn"][before]
            self.named["msisdn"][after] = line.id
        if "msisdnPrefix" in self.sorted:
            insort(self.sorted["msisdnPrefix"], (after, line.id))

    def sim_changed(self, line: Line, before: str) -> None:
        """The status of a line's SIM was `before`."""
        after = line.sim.status
        if after == "FREE" != before and line.account_id in self.free:
            heappush(self.free[line.account_id], line.id)
        if line.sim.esim and line.account_id in self.sims:
            self.sims[line.account_id][line.sim.sponsor_id, before] -= 1
            self.sims[line.account_id][line.sim.sponsor_id, after] += 1

    def moved(self) -> None:
        """Lines have come to another account."""
        self.accounts.clear()
        self.free.clear()
        self.sims.clear()
