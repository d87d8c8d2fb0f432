"""What every test shares: the async backend, skips that count as failures when asked, and the time each folder takes."""

import gc
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from tests import authorities, ramdisk
from tests.spread import LONGEST, TOGETHER

pytest_plugins = ["tests.draw_plugin"]
REQUIRE_ALL = os.environ.get("REQUIRE_ALL") == "1"
FIRST, PATIENCE = "gw0", 120.0
LONGEST_WAIT = 60.0
SPENT = pytest.StashKey[defaultdict[str, float]]()

settings.register_profile("house", deadline=None, derandomize=REQUIRE_ALL, print_blob=True)
settings.load_profile("house")


@pytest.fixture(scope="session")
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": False}


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers have their controller's
        ramdisk.use()
    authorities.use()
    clients_are_patient()
    config.stash[SPENT] = defaultdict(float)
    config.pluginmanager.register(Spending(config.stash[SPENT]), "spending")


def clients_are_patient() -> None:
    """What says nothing waits longer than httpx's five seconds: a busy machine may not let a server run for so long."""
    for each in ("connect", "read", "write", "pool"):
        setattr(DEFAULT_TIMEOUT_CONFIG, each, LONGEST_WAIT)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On several cores the longest files go first; the others stay beside their neighbours, with whom they share a package's fixtures."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: LONGEST.index(file) if (file := item.nodeid.split("::")[0]) in LONGEST else len(LONGEST))


class FolderScheduling(LoadFileScheduling):
    """A file goes to one worker, and so does a whole folder whose tests share what takes long to begin."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.split("::", maxsplit=1)[0]
        return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FolderScheduling:
    return FolderScheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What the files make stays; to look through it again and again for what does not takes a third of the time."""
    compiled(session)
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def compiled(session: pytest.Session) -> None:
    """One worker looks at the files first: the others find compiled what each would have compiled for itself at the same time."""
    mark = looked(session.config)
    if mark is not None and session.config.workerinput["workerid"] != FIRST:  # pyright: ignore[reportAttributeAccessIssue]  # xdist's
        ends = time.monotonic() + PATIENCE
        while not mark.exists() and time.monotonic() < ends:
            time.sleep(0.05)


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is there now stays. A network is ten thousand objects, and looking at them after every 700 takes more than making them."""
    mark = looked(session.config)
    if mark is not None:
        mark.touch()
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)


@pytest.hookimpl(tryfirst=True)
def pytest_unconfigure() -> None:
    """pytest looks through everything five times for what was left open: what two looks have passed is not looked at again."""
    for _ in range(2):
        gc.collect()
    gc.freeze()


def looked(config: pytest.Config) -> Path | None:
    """What says that a worker has seen every file; nothing where there are no workers, or nothing compiled is kept."""
    told = getattr(config, "workerinput", None)
    return None if told is None or sys.dont_write_bytecode else Path(tempfile.gettempdir()) / f"looked-{told['testrunuid']}"


class Spending:
    """Adds up the seconds of each folder. Under xdist the reports of all workers arrive here."""

    def __init__(self, spent: defaultdict[str, float]) -> None:
        self.spent = spent

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        parts = Path(report.nodeid.split("::")[0]).parts
        self.spent[parts[1] if len(parts) > 2 else "."] += report.duration


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if REQUIRE_ALL and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome, report.longrepr = "failed", refused(report.longrepr)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    if REQUIRE_ALL and report.skipped:
        report.outcome, report.longrepr = "failed", refused(report.longrepr)
    return report


def refused(reason: object) -> str:
    return f"REQUIRE_ALL=1 lets no test be skipped, and this one was: {reason}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    spent = config.stash[SPENT]
    if sum(spent.values()) < 1:
        return
    terminalreporter.section("seconds per folder, of all workers")
    for folder, seconds in sorted(spent.items()):
        terminalreporter.write_line(f"{folder:<22} {seconds:7.1f}")


@pytest.fixture(scope="session")
def postgres_database() -> Generator[str | None]:
    """One database at HEAD for all tests of this process; whoever uses it empties it first, or takes `postgres`."""
    from tests.databases import migrated_postgres  # the schema is not imported where only files are looked at

    with migrated_postgres() as url:
        yield url


@pytest.fixture
def postgres(postgres_database: str | None) -> str:
    """The address of an empty PostgreSQL database."""
    from tests.databases import NO_POSTGRES, empty

    if postgres_database is None:
        pytest.skip(NO_POSTGRES)
    empty(postgres_database)
    return postgres_database


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """Either database: nothing for a new SQLite file, or the address of an empty PostgreSQL database."""
    return None if request.param == "sqlite" else request.getfixturevalue("postgres")


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def whole_database_url(request: pytest.FixtureRequest) -> Generator[str | None]:
    """Either database, of one's own, whose history has no partitions: only such a schema can be taken back."""
    from tests.databases import migrated_postgres, required_database

    if request.param == "sqlite":
        yield None
        return
    with required_database(migrated_postgres(divided=False)) as url:
        yield url


@pytest.fixture(autouse=True)
def streams_begin_open() -> None:
    """sse-starlette remembers for the whole process that a server was told to exit, and ends every later stream of it."""
    sse = sys.modules.get("sse_starlette.sse")
    if sse is not None:
        sse.AppStatus.should_exit = False
