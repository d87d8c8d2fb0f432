"""Which of the long tests one run tries: a share that each commit draws anew, so that between them the commits try all.

All tests together take half an hour of two cores, and nobody waits for that after every change. Most of it is spent in three kinds. Some
tests are long by themselves: they kill servers, drive a browser, make clients in other languages, run a month. They have the mark `long`.
Others are sweeps: they ask each of two hundred operations the same thing at both doors. Their rows go through `drawn`, so that what is not
drawn is not even collected. An operation is drawn for all sweeps at once. And others ask one rule of many cases, each of them quick: they
have the mark `cases`, and of each of these one case is tried in every run.

`python3 ./run test` draws one in eight of all three. What is drawn follows from a key, the hash of the commit: the workers of a run
agree, a red run is repeated exactly by `TEST_DRAW=KEY python3 ./run test`, and the next commit draws others. `run test --whole` runs all.
Where files or options are named nothing is drawn away, and neither is what the last commit has changed, or what is not committed yet.

A drawn run does not prove that a long test which it left out still passes: an edit that breaks one may be found only some commits later
(after ten commits one in four of them has still not been tried, after 35 one in a hundred), so before a release all are run.
"""

import hashlib
import os
import subprocess
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

TREE = Path(__file__).resolve().parent.parent
ONE_IN = 8
"""One of so many is drawn."""
ALWAYS = frozenset(
    (
        "create_connectivity_intent",  # an eSIM is drawn
        "get_subscriber",  # a read of the charging system
        "list_connectivity_products",  # a list of ours
        "modify_account_balance",  # money moves upstream
        "rollback_esim_issuance",  # two steps
    )
)
"""Operations that every run asks: one of each way to go wrong that would be felt first."""
LARGE = 20
"""A commit that changes more files than these is a merge or a sweep: to try all of its tests in full would take minutes."""
Row = TypeVar("Row")


class Draw(NamedTuple):
    """What decides who is drawn: the key, without which everybody is, and the files that are tried in full."""

    key: str = ""
    changed: frozenset[str] = frozenset()

    def takes(self, name: str) -> bool:
        return not self.key or name in ALWAYS or number(self.key, name) % ONE_IN == 0


class Tally:
    """How many of which were offered, and how many of these were drawn."""

    def __init__(self) -> None:
        self.draw = Draw()
        self.rows: dict[str, bool] = {}
        self.long: dict[str, bool] = {}

    def counts(self) -> list[int]:
        return [count for of in (self.long, self.rows) for count in (sum(of.values()), len(of))]


TALLY = Tally()
"""Of this process: what files ask while they are imported has no other way to know the draw."""


def number(key: str, name: str) -> int:
    return int.from_bytes(hashlib.blake2b(f"{key}\0{name}".encode(), digest_size=8).digest())


def drawn(rows: Iterable[Row], file: str) -> list[Row]:
    """Those of `rows` that this run tries, for `parametrize` in `file`, which is `__file__` there.

    A row is an operation, a text or a `pytest.param` whose first value is one. Of few rows at least one is drawn.
    """
    all_rows, draw = list(rows), TALLY.draw
    if not draw.key:
        return all_rows
    chosen = {name_of(row): draw.takes(name_of(row)) or source_of(row) in draw.changed for row in all_rows}
    TALLY.rows |= chosen
    if relative(file) in draw.changed:
        return all_rows
    return [row for row in all_rows if chosen[name_of(row)]] or sorted(all_rows, key=lambda row: number(draw.key, name_of(row)))[:1]


def subject(row: object) -> object:
    values = getattr(row, "values", None)
    return cast("tuple[object, ...]", values)[0] if isinstance(values, tuple) else row


def name_of(row: object) -> str:
    found = subject(row)
    return str(getattr(found, "id", found))


def source_of(row: object) -> str:
    """The file that declares the operation of a row."""
    return str(getattr(subject(row), "module", "")).replace(".", "/") + ".py"


def relative(file: str) -> str:
    path = Path(file).resolve()
    return path.relative_to(TREE).as_posix() if path.is_relative_to(TREE) else path.as_posix()


def git(*words: str) -> str | None:
    """What git says, or nothing where there is none, or no such commit."""
    try:
        done = subprocess.run(["git", "-C", str(TREE), *words], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def usual_key() -> str:
    """The key that somebody set, else the commit, else the version."""
    commit = git("rev-parse", "HEAD") or ""
    version = tomllib.loads((TREE / "pyproject.toml").read_text())["project"]["version"]
    return os.environ.get("TEST_DRAW") or commit[:6] or hashlib.blake2b(version.encode()).hexdigest()[:6]


def changed_files() -> frozenset[str]:
    """What the last commit changed, and what is not committed yet. A merge or a sweep over the tree is no work on its files."""
    new = names(git("ls-files", "--others", "--exclude-standard", "-z"))
    open_yet, since = (names(git("diff", "--name-only", "-z", commit)) for commit in ("HEAD", "HEAD~1"))
    return frozenset(new | (since if 0 < len(since) <= LARGE else open_yet))


def names(said: str | None) -> set[str]:
    return set((said or "").split("\0")) - {""}


def told(key: str, counts: Sequence[int]) -> str:
    """The line that says what was drawn, and what to do about it."""
    long, of_long, rows, of_rows = counts
    return f"drawn by {key}: {long} of {of_long} long tests and cases, {rows} of {of_rows} operations ({ways(key)})"


def ways(key: str) -> str:
    return f"TEST_DRAW={key} repeats it, run test --whole runs all"
