"""`reseller cdr import`: sends a file of call records, a thousand at a time, and shows how far it is."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple, TextIO, cast

import anyio
import orjson
import typer

from clients.webhooks.sender import retry_after_seconds
from operations.invoicing.call_records import CDR_BATCH_LIMIT, CdrIngested
from registry.call import Reply
from registry.clock import Clock, SystemClock, rfc3339_utc
from transports.cli.cdr_file import (
    BadLine,
    CdrFile,
    CdrFormat,
    CdrReader,
    ImportProgress,
    find_cdr_file,
    progress_file,
    read_header,
    read_record,
)
from transports.cli.render import explain_refusal, refusal_body, reply_header
from transports.cli.target import CallTarget, TargetOptions, at_target, open_target, require_success
from transports.cli.terminal import Failure, Unreachable, harmless_text, to_stderr

if TYPE_CHECKING:
    from rich import progress as bars


SEND_PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds before a batch is sent again to somebody who does not answer."""
REFUSED_RECORD = re.compile(r"events\[([0-9]+)\]")

CdrRecord = dict[str, object]


class SentBatch(NamedTuple):
    """What came of a batch; `refused` are the places of records that were not taken, and why."""

    stored: int
    skipped: int
    refused: dict[int, str]


class RecordSender:
    """Sends batches; one record that is refused does not keep the others from being stored."""

    def __init__(
        self, target: CallTarget, clock: Clock, *, say: Callable[[str], None], pause: Callable[[float], Awaitable[object]]
    ) -> None:
        self._target, self._clock, self._say, self._pause = target, clock, say, pause

    async def send(self, records: Sequence[CdrRecord]) -> SentBatch:
        """Has a batch stored. Sending it twice is harmless: each record counts once."""
        places, refused = list(range(len(records))), dict[int, str]()
        while places:
            reply = await self._answered({"events": [records[place] for place in places]})
            found = REFUSED_RECORD.match(str(refusal_body(reply).get("param"))) if reply.status == 400 else None
            if found is None:
                counts = ingest_counts(require_success(reply, "reseller cdr import"), self._target.name)
                return SentBatch(counts["stored"], counts["skipped"], refused)
            reason = str(refusal_body(reply).get("error")).removeprefix(found[0]).lstrip(".: ")
            refused[places.pop(int(found[1]))] = reason
        return SentBatch(0, 0, refused)

    async def _answered(self, batch: CdrRecord) -> Reply:
        """The answer to `batch`; waits as long as the server asks for."""
        failed = 0
        while True:
            try:
                reply = await self._target.ask("ingest_cdr_events", batch)
                trouble = f"{self._target.name} answers {reply.status}"
            except Unreachable as error:
                reply, trouble = None, error.message
            if reply is not None and reply.status == 429:
                await self._wait_as_told(reply)
                continue
            if reply is not None and reply.status < 500:
                return reply
            if failed == len(SEND_PAUSES):
                raise Unreachable(trouble if reply is None else explain_refusal(reply, "reseller cdr import"), exit_code=3)
            self._say(f"{trouble}; the next try is in {SEND_PAUSES[failed]:g} s")
            await self._pause(SEND_PAUSES[failed])
            failed += 1

    async def _wait_as_told(self, reply: Reply) -> None:
        seconds = max(1.0, retry_after_seconds(reply_header(reply, "retry-after"), self._clock.now()) or 1.0)
        if seconds > 1:  # the burst limit of a busy import is no news
            self._say(f"429 {refusal_body(reply).get('code', '')}: goes on in {seconds:g} s, at {rfc3339_utc(self._clock.now() + seconds)}")
        await self._pause(seconds)


def ingest_counts(reply: Reply, where: str) -> CdrIngested:
    try:
        counts = cast(CdrIngested, orjson.loads(reply.body))
        if counts["stored"] + counts["skipped"] != counts["received"]:
            raise ValueError
        return counts
    except (ValueError, LookupError, TypeError):
        raise Failure(f"--url: what {where} answers is no count of records; is this the service's address?", exit_code=3) from None


PRINTED_LINES = 20
PROGRESS_SECONDS = 5.0


class ImportReport:
    """Speaks on stderr, beside what the command prints."""

    def __init__(self, clock: Clock, began: ImportProgress, size: int, errors: Path | None) -> None:
        self._clock, self._began, self._size = clock, began, size
        self._start = self._last = clock.monotonic()
        self._printed = 0
        self._bar = terminal_bar() if sys.stderr.isatty() else None
        self._task = self._bar.add_task("", total=size or None) if self._bar else None
        self._errors = open_error_file(errors, again=began.line > 0)

    def __enter__(self) -> "ImportReport":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._errors is not None:
            self._errors.close()

    def say(self, text: str) -> None:
        if self._bar is not None:
            self._bar.console.print(harmless_text(text), markup=False, highlight=False, soft_wrap=True)
            return
        to_stderr(text)

    def tell_bad(self, lines: Iterable[BadLine]) -> None:
        """Prints the first bad lines; all of them go into the file that was asked for."""
        for line in lines:
            if self._errors is not None:
                self._errors.write(f"{line}\n")
            if self._printed < PRINTED_LINES:
                self.say(str(line))
            elif self._printed == PRINTED_LINES:
                self.say("more lines are bad; " + ("all of them are in the file" if self._errors else "--errors FILE writes all of them"))
            self._printed += 1
        if self._errors is not None:
            self._errors.flush()

    def tell(self, progress: ImportProgress, done: int, *, last: bool = False) -> None:
        """Shows the progress. `done`: bytes of the file that were read."""
        now = self._clock.monotonic()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, description=self.counts(progress))
        elif last or now - self._last >= PROGRESS_SECONDS:
            share = f"{100 * done // self._size} %, " if self._size else ""
            self.say(f"{share}{self.counts(progress)}")
            self._last = now

    def counts(self, progress: ImportProgress) -> str:
        before, seconds = self._began, max(self._clock.monotonic() - self._start, 0.001)
        rows = progress.records - before.records
        bad = f", bad {progress.bad}" if progress.bad else ""
        return f"{rows / seconds:,.0f} rows/s, stored {progress.stored:,}, skipped {progress.skipped:,}{bad}"


def terminal_bar() -> "bars.Progress":
    from rich import progress as bars  # rich is loaded for a person only
    from rich.console import Console

    columns = (bars.BarColumn(), bars.TaskProgressColumn(), bars.TextColumn("{task.description}"), bars.TimeRemainingColumn())
    return bars.Progress(*columns, console=Console(stderr=True))


def open_error_file(path: Path | None, *, again: bool) -> TextIO | None:
    """The file for bad lines; a resumed import appends to it."""
    if path is None:
        return None
    try:
        return path.open("a" if again else "w", encoding="utf-8")
    except OSError as error:
        raise Failure(f"--errors: {path} cannot be written ({error.strerror})") from None


cdr_app = typer.Typer(no_args_is_help=True, help="Bring call records in.")
GO_ON_HINT = "run the same command again and it goes on there, nothing counts twice"


@dataclass(slots=True)
class RecordBatch:
    """Records on their way, the numbers of their lines, and how far they take the import."""

    line: int
    offset: int
    records: list[CdrRecord] = field(default_factory=list[CdrRecord])
    numbers: list[int] = field(default_factory=list[int])
    bad: list[BadLine] = field(default_factory=list[BadLine])

    @property
    def full(self) -> bool:
        """Whether the batch should be sent. Bad lines count too, so that a file of bad lines only is reported while it is read."""
        return len(self.records) + len(self.bad) >= CDR_BATCH_LIMIT


@cdr_app.command("import")
@at_target
def import_cdr_file(
    where: TargetOptions,
    file: Annotated[Path, typer.Argument(help="CSV with a header, or JSON lines; both may be packed with gzip.")],
    format: Annotated[CdrFormat | None, typer.Option("--format", help="Where the file's name does not tell.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Begin with the first line, also where an import was interrupted.")] = False,
    errors: Annotated[Path | None, typer.Option("--errors", help="Write number and reason of each unusable line here.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as one JSON object.")] = False,
) -> None:
    """Store the call records of a file: `id`, `iccid`, `occurred_at`, `bytes_up`, `bytes_down`, and where known `network`, `country`.

    Each id counts once, however often it is sent, so an import can be repeated. One that was killed goes on where it was. Lines that
    are no records are told with their number and the reason, the others are stored, and the exit code is 1.
    """
    found = find_cdr_file(file, format)
    try:
        progress = asyncio.run(run_import(where, found, errors, SystemClock(), again=again))
    except KeyboardInterrupt:
        raise Failure(f"stopped; {GO_ON_HINT}", exit_code=130) from None
    counts = {"lines": progress.records, "stored": progress.stored, "skipped": progress.skipped, "bad": progress.bad}
    words = ", ".join(f"{name} {count:,}" for name, count in counts.items())
    sys.stdout.write((orjson.dumps(counts).decode() if as_json else words) + "\n")
    if progress.bad:
        raise Failure(f"{progress.bad:,} of the lines could not be used; mend them and import the file once more", exit_code=1)


async def run_import(where: TargetOptions, file: CdrFile, errors: Path | None, clock: Clock, *, again: bool) -> ImportProgress:
    """Sends the part of the file that was not sent before; the counts of the whole import."""
    progress_store = await progress_file(where, file)
    progress = ImportProgress() if again else progress_store.read()
    with file.opened() as reading, ImportReport(clock, progress, reading.size, errors) as report:
        if progress.line:
            report.say(f"goes on after line {progress.line:,}; --again begins with the first line")
        async with open_target(where) as target:
            sender = RecordSender(target, clock, say=report.say, pause=anyio.sleep)
            for batch in record_batches(file, reading, progress, clock):
                progress = await send_batch(sender, batch, progress, report)
                progress_store.write(progress)
                report.tell(progress, reading.done)
        report.tell(progress, reading.size, last=True)
        if not progress_store.works:
            report.say("how far it came could not be kept: had it been killed, it would have begun anew")
    progress_store.forget()
    return progress


async def send_batch(sender: RecordSender, batch: RecordBatch, progress: ImportProgress, report: ImportReport) -> ImportProgress:
    """Has a batch stored, and reports the lines that were not."""
    try:
        sent = await sender.send(batch.records)
    except Failure as failure:
        raise Failure(f"{failure.message}\n  stopped after line {progress.line:,}; {GO_ON_HINT}", exit_code=failure.exit_code) from None
    refused = [BadLine(batch.numbers[place], reason) for place, reason in sent.refused.items()]
    bad = sorted([*batch.bad, *refused])
    report.tell_bad(bad)
    return ImportProgress(
        offset=batch.offset,
        line=batch.line,
        stored=progress.stored + sent.stored,
        skipped=progress.skipped + sent.skipped,
        bad=progress.bad + len(bad),
    )


def record_batches(file: CdrFile, reading: CdrReader, progress: ImportProgress, clock: Clock) -> Iterator[RecordBatch]:
    """The rest of the file, in batches of a thousand records."""
    columns, named = read_header(file, reading)
    first = RecordBatch(progress.line, progress.offset) if progress.line or named is None else RecordBatch(named.number, named.after)
    batch, begun = first, first.line
    for line in reading.lines(offset=first.offset, number=first.line):
        found = read_record(line, columns, clock.now()) if line.raw is None or line.raw.strip() else None
        if isinstance(found, BadLine):
            batch.bad.append(found)
        elif found is not None:
            batch.records.append(found)
            batch.numbers.append(line.number)
        batch.line, batch.offset = line.number, line.after
        if batch.full:
            yield batch
            batch, begun = RecordBatch(line.number, line.after), line.number
    if batch.line > begun:
        yield batch
