"""What an import shows while it runs: a bar on a terminal, a line now and then elsewhere, and the lines it could not use."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from registry.clock import Clock
from transports.cli.cdr_progress import Progress
from transports.cli.cdr_record import BadLine
from transports.cli.failure import Failure
from transports.cli.terminal_text import harmless, shown_on

if TYPE_CHECKING:
    from rich import progress as bars

PRINTED = 20
EVERY_SECONDS = 5.0


class Report:
    """Speaks on stderr, beside what the command prints."""

    def __init__(self, clock: Clock, began: Progress, size: int, errors: Path | None) -> None:
        self._clock, self._began, self._size = clock, began, size
        self._start = self._last = clock.monotonic()
        self._printed = 0
        self._bar = terminal_bar() if sys.stderr.isatty() else None
        self._task = self._bar.add_task("", total=size or None) if self._bar else None
        self._errors = open_errors(errors, again=began.line > 0)

    def __enter__(self) -> "Report":
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._errors is not None:
            self._errors.close()

    def say(self, text: str) -> None:
        """A line of its own."""
        if self._bar is not None:
            self._bar.console.print(harmless(text), markup=False, highlight=False, soft_wrap=True)
            return
        sys.stderr.write(shown_on(sys.stderr, text) + "\n")
        sys.stderr.flush()

    def tell_bad(self, lines: Iterable[BadLine]) -> None:
        """The first few; all of them go into the file that was asked for."""
        for line in lines:
            if self._errors is not None:
                self._errors.write(f"{line}\n")
            if self._printed < PRINTED:
                self.say(str(line))
            elif self._printed == PRINTED:
                self.say("more lines are bad; " + ("all of them are in the file" if self._errors else "--errors FILE writes all of them"))
            self._printed += 1
        if self._errors is not None:
            self._errors.flush()

    def tell(self, progress: Progress, done: int, *, last: bool = False) -> None:
        """How far it has come."""
        now = self._clock.monotonic()
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=done, description=self.counts(progress))
        elif last or now - self._last >= EVERY_SECONDS:
            share = f"{100 * done // self._size} %, " if self._size else ""
            self.say(f"{share}{self.counts(progress)}")
            self._last = now

    def counts(self, progress: Progress) -> str:
        """The figures, and the pace of this run."""
        before, seconds = self._began, max(self._clock.monotonic() - self._start, 0.001)
        rows = progress.records - before.records
        bad = f", bad {progress.bad}" if progress.bad else ""
        return f"{rows / seconds:,.0f} rows/s, stored {progress.stored:,}, skipped {progress.skipped:,}{bad}"


def terminal_bar() -> "bars.Progress":
    """A bar, the share, the figures, the time it will take."""
    from rich import progress as bars  # rich is loaded for a person only
    from rich.console import Console

    columns = (bars.BarColumn(), bars.TaskProgressColumn(), bars.TextColumn("{task.description}"), bars.TimeRemainingColumn())
    return bars.Progress(*columns, console=Console(stderr=True))


def open_errors(path: Path | None, *, again: bool) -> TextIO | None:
    """The file for bad lines; an import that goes on adds to it."""
    if path is None:
        return None
    try:
        return path.open("a" if again else "w", encoding="utf-8")
    except OSError as error:
        raise Failure(f"--errors: {path} cannot be written ({error.strerror})") from None
