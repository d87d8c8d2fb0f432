"""`reseller cdr import`: send a file of call records, a thousand at a time."""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import anyio
import orjson
import typer

from operations.invoicing.cdr_ingest import MOST_EVENTS
from registry.clock import Clock, SystemClock
from transports.cli.cdr_file import CdrFile, Format, Reading, cdr_file
from transports.cli.cdr_progress import Progress, kept_for
from transports.cli.cdr_record import BadLine, header, record
from transports.cli.cdr_report import Report
from transports.cli.cdr_sending import Record, Sender
from transports.cli.door import Data, Key, Org, Url, Where, open_door
from transports.cli.failure import Failure

cdr_app = typer.Typer(no_args_is_help=True, help="Bring call records in.")
AGAIN = "run the same command again and it goes on there, nothing counts twice"


@cdr_app.callback()
def cdr() -> None:
    """Bring call records in."""


@dataclass(slots=True)
class Batch:
    """Records on their way, the numbers of their lines, and how far they take the import."""

    line: int
    offset: int
    records: list[Record] = field(default_factory=list[Record])
    numbers: list[int] = field(default_factory=list[int])
    bad: list[BadLine] = field(default_factory=list[BadLine])

    @property
    def full(self) -> bool:
        """Whether it is to be sent. Bad lines count as well, so that a file of nothing else is told of as it is read."""
        return len(self.records) + len(self.bad) >= MOST_EVENTS


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to import, and how."""

    where: Where
    file: CdrFile
    again: bool
    errors: Path | None


@cdr_app.command("import")
def import_file(
    file: Annotated[Path, typer.Argument(help="CSV with a header, or JSON lines; both may be packed with gzip.")],
    format: Annotated[Format | None, typer.Option("--format", help="Where the file's name does not tell.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Begin with the first line, also where an import was interrupted.")] = False,
    errors: Annotated[Path | None, typer.Option("--errors", help="Write number and reason of each unusable line here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as one JSON object.")] = False,
    url: Url = None,
    key: Key = None,
    org: Org = None,
    data: Data = None,
) -> None:
    """Store the call records of a file: `id`, `iccid`, `occurred_at`, `bytes_up`, `bytes_down`, and where known `network`, `country`.

    Each id counts once, however often it is sent, so an import can be repeated. One that was killed goes on where it was. Lines that
    are no records are told with their number and the reason, the others are stored, and the exit code is 1.
    """
    wanted = Wanted(Where(url, key, org, data), cdr_file(file, format), again, errors)
    try:
        came = asyncio.run(bring_in(wanted, SystemClock()))
    except KeyboardInterrupt:
        raise Failure(f"stopped; {AGAIN}", exit_code=130) from None
    counts = {"lines": came.records, "stored": came.stored, "skipped": came.skipped, "bad": came.bad}
    words = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    sys.stdout.write((orjson.dumps(counts).decode() if as_json else words) + "\n")
    if came.bad:
        raise Failure(f"{came.bad:,} of the lines could not be used; mend them and import the file once more", exit_code=1)


async def bring_in(wanted: Wanted, clock: Clock) -> Progress:
    """Send all of the file that was not sent before; what came of the whole import."""
    kept = await kept_for(wanted.where, wanted.file)
    progress = Progress() if wanted.again else kept.read()
    with wanted.file.opened() as reading, Report(clock, progress, reading.size, wanted.errors) as report:
        if progress.line:
            report.say(f"goes on after line {progress.line:,}; --again begins with the first line")
        async with open_door(wanted.where) as door:
            sender = Sender(door, clock, say=report.say, pause=anyio.sleep)
            for batch in batches(wanted.file, reading, progress, clock):
                progress = await send(sender, batch, progress, report)
                kept.write(progress)
                report.tell(progress, reading.done)
        report.tell(progress, reading.size, last=True)
        if not kept.works:
            report.say("how far it came could not be kept: had it been killed, it would have begun anew")
    kept.forget()
    return progress


async def send(sender: Sender, batch: Batch, progress: Progress, report: Report) -> Progress:
    """Have a batch stored, and tell what of it was not."""
    try:
        sent = await sender.send(batch.records)
    except Failure as failure:
        raise Failure(f"{failure.message}\n  stopped after line {progress.line:,}; {AGAIN}", exit_code=failure.exit_code) from None
    refused = [BadLine(batch.numbers[place], reason) for place, reason in sent.refused.items()]
    bad = sorted([*batch.bad, *refused])
    report.tell_bad(bad)
    return Progress(
        offset=batch.offset,
        line=batch.line,
        stored=progress.stored + sent.stored,
        skipped=progress.skipped + sent.skipped,
        bad=progress.bad + len(bad),
    )


def batches(file: CdrFile, reading: Reading, progress: Progress, clock: Clock) -> Iterator[Batch]:
    """The rest of the file, a thousand records at a time."""
    columns, named = header(file, reading)
    first = Batch(progress.line, progress.offset) if progress.line or named is None else Batch(named.number, named.after)
    batch, begun = first, first.line
    for line in reading.lines(offset=first.offset, number=first.line):
        found = record(line, columns, clock.now()) if line.raw is None or line.raw.strip() else None
        if isinstance(found, BadLine):
            batch.bad.append(found)
        elif found is not None:
            batch.records.append(found)
            batch.numbers.append(line.number)
        batch.line, batch.offset = line.number, line.after
        if batch.full:
            yield batch
            batch, begun = Batch(line.number, line.after), line.number
    if batch.line > begun:
        yield batch
