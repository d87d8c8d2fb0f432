"""Who takes call records: this service and the rivals, each a process over a database of its own that holds the same rows."""

import shutil
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.cdr_fill import COVERING, fill, run, settle
from benchmarks.contestant import Contestant, wired
from benchmarks.issuing_cast import KEYRING, process, settled
from benchmarks.names import CDR_TUNED, CDR_TUTORIAL, OURS
from benchmarks.postgres import database
from benchmarks.processes import cpu_seconds
from storage.engine.database_url import is_sqlite_url

NAMES = {OURS: "service", CDR_TUNED: "cdr_fastapi_tuned", CDR_TUTORIAL: "cdr_fastapi"}
ACCOUNT = 9001
SQLITE, POSTGRES = "SQLite", "PostgreSQL"


@dataclass(frozen=True)
class Entrant:
    """A running server over a table of `size` records, and the first process of its PostgreSQL, if that can be seen."""

    contestant: Contestant
    key: str
    organisation: str
    url: str
    size: int
    database: int | None

    @property
    def name(self) -> str:
        return self.contestant.name

    def cpu(self) -> tuple[float, float]:
        """What the server has used, and what its PostgreSQL has."""
        return cpu_seconds(self.contestant.pid), cpu_seconds(self.database) if self.database else 0.0


@contextmanager
def entrants(kind: str, sizes: Sequence[int], folder: Path, names: Sequence[str] = tuple(NAMES)) -> Generator[list[Entrant]]:
    """Everybody, or some, over tables of every size, in one kind of database; nobody where there is no server."""
    with ExitStack() as stack:
        folder.mkdir()
        stack.callback(shutil.rmtree, folder)
        server = stack.enter_context(database()) if kind == POSTGRES else ""
        found: list[Entrant] = []
        if server is not None:
            for size in sizes:
                found += of_size(stack, server, size, folder / str(size), names)
        yield found


def of_size(stack: ExitStack, server: str, size: int, place: Path, names: Sequence[str]) -> list[Entrant]:
    """A database is made once and copied for everybody else."""
    first, *others = [NAMES[name] for name in names]
    for module in (first, *others):
        (place / module).mkdir(parents=True)
    url = stack.enter_context(beside(server, name_in(first, size))) if server else file_in(place / first)
    key = settled(url, [ACCOUNT])[0].key
    ((organisation,),) = run(url, ["select id from organisation"])
    if size:
        fill(url, organisation, size)
    urls = [url]
    for module in others:
        if server:
            urls.append(stack.enter_context(beside(server, name_in(module, size), template=url)))
        else:
            shutil.copyfile(place / first / "service.db", place / module / "service.db")
            urls.append(file_in(place / module))
    found: list[Entrant] = []
    for name, own in zip(names, urls, strict=True):
        if name == CDR_TUTORIAL and size:
            run(own, [COVERING])
            settle(own)
        running = stack.enter_context(serving(name, own, place / NAMES[name]))
        found.append(Entrant(running, key, organisation, own, size, postmaster(own) if server else None))
    return found


@contextmanager
def serving(name: str, url: str, folder: Path) -> Generator[Contestant]:
    """A server over a database; nobody asks the charging system, so there is none."""
    module = NAMES[name]
    (folder / "keyring").write_text(KEYRING)
    words = ("transports.cli", "serve") if name == OURS else ("benchmarks.rivals", module)
    there = "" if is_sqlite_url(url) else url  # without an address it is the SQLite file in the folder
    settings = wired(1) | {"SERVICE_DEMO": "false", "SERVICE_SECRET_KEYS": KEYRING, "SERVICE_DATABASE_URL": there}
    with process(name, words, folder, settings) as running:
        yield running


def file_in(folder: Path) -> str:
    """The address of the SQLite file in a folder."""
    return f"sqlite:///{folder / 'service.db'}"


def name_in(module: str, size: int) -> str:
    """What a rival's database is called, after the first one's name: PostgreSQL cuts names off at 63 characters."""
    return f"{module.removeprefix('cdr_')}_{size}"


@contextmanager
def beside(url: str, name: str, *, template: str = "") -> Generator[str]:
    """Another database of the same server, new or a copy of one that nobody is connected to."""
    parts, query = urlsplit(url), f"?{urlsplit(url).query}" if urlsplit(url).query else ""
    whole = f"{parts.path[1:]}_{name}"
    copying = f" template {urlsplit(template).path[1:]} strategy file_copy" if template else ""
    run(url, [f"create database {whole}{copying}"])
    try:
        yield f"{parts.scheme}://{parts.netloc}/{whole}{query}"
    finally:
        run(url, [f"drop database {whole} with (force)"])


def postmaster(url: str) -> int | None:
    """The server's first process, if it runs on this machine and we may look."""
    ((folder,),) = run(url, ["show data_directory"])
    try:
        return int((Path(folder) / "postmaster.pid").read_text().split()[0])
    except OSError:
        return None
