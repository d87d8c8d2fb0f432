"""What a trial has shown: a row of the table, and the page that keeps the table of the last run."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.endurance.circumstances import circumstances

HEAD = ("Trial", "What was done", "Reached", "Aim", "Met")


class ProofRow(NamedTuple):
    """One row. `met`: None where nothing is aimed at, or where it cannot be done on this machine; `reached` then says why."""

    trial: str
    done: str
    reached: str
    aim: str = ""
    met: bool | None = None

    @property
    def verdict(self) -> str:
        return "-" if self.met is None else "yes" if self.met else "**no**"

    def line(self) -> str:
        return "| " + " | ".join(cell.replace("|", "/") for cell in (*self[:4], self.verdict)) + " |"


def proof_table(proofs: Sequence[ProofRow]) -> str:
    return "\n".join(["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD), *(proof.line() for proof in proofs)])


def missed(proofs: Sequence[ProofRow]) -> list[ProofRow]:
    """The rows whose aim was not reached."""
    return [proof for proof in proofs if proof.met is False]


def progress(proofs: Sequence[ProofRow]) -> str:
    """A few words about a trial that has ended: the table has the rest."""
    failed = [proof.done for proof in missed(proofs)]
    what = f"{len(failed)} of {len(proofs)} rows missed: {'; '.join(failed)}" if failed else f"{len(proofs)} rows, none missed"
    return f"ended, {what}"


def surroundings() -> str:
    """Date, revision and machine of this run."""
    found = circumstances()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    return f"{found['date']}, revision {found['revision']}, {found['machine']}, {memory:.0f} GiB of memory, load average before it {load}"


PAGE = """# Proofs

What the service does while its servers, its database and the systems behind it fall, tried with real processes:

```sh
python3 ./run trial --write
```

Every trial has an installation of its own: PostgreSQL, two servers and two workers with the settings of production, nginx in front of both
with the file of [ops](../ops/nginx.conf), and the simulated charging system and payment processor behind TLS of an authority of one's own.
Two settings are not production's: webhooks may reach this machine, where their receivers are, and there is no burst limit except where one
is tried. `--seconds` scales the long trials, `--only` chooses. The command needs nginx, and PostgreSQL of the development packages; it ends
with 2 and says what it lacks, and with 1 when an aim is missed.

A call has failed when it had no answer, or one of 400 and more. nginx sends a POST that has reached a server to no other one: a caller
whose server is killed meanwhile has no answer, and calls again with the same key.

The last run: {about}. {remark}

{table}
"""
SECTION = "\n## "
LOADED = "Other programs were at work on this machine: read milliseconds and seconds with that in mind; counts do not depend on it."
ALONE = "The machine had little else to do when it began."


def proof_page(about: str, proofs: Sequence[ProofRow], *, busy: bool) -> str:
    """The whole document. `busy`: the machine had other work before the run began."""
    return PAGE.format(about=about, remark=LOADED if busy else ALONE, table=proof_table(proofs))


def is_busy() -> bool:
    """Whether others use more than a quarter of this machine's processors."""
    return os.getloadavg()[0] > (os.cpu_count() or 1) / 4


def write_page(place: Path, text: str) -> None:
    """In the place of the one of the run before. The page's sections, which other commands are the source of, stay."""
    former = place.read_text() if place.exists() else ""
    begins = former.find(SECTION)
    place.write_text(text if begins < 0 else text + former[begins:])
