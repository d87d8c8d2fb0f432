"""The two walks of CONTRIBUTING: how many files somebody writes by hand to add an operation, tried in a copy of the tree."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from filecmp import cmp
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.harness.processes import ROOT
from tests.replicas.next_release import take_compiled

pytestmark = pytest.mark.long

SKIPPED = shutil.ignore_patterns(".git", ".venv*", "data", "__pycache__", ".*_cache", "node_modules")
GENERATED = ("docs/openapi.json", "docs/reference/", "llms.txt")
"""What CONTRIBUTING names under "What is generated", without the tables, which take half a minute."""
TRY = """
import pytest

code = pytest.main({arguments!r})

import contextlib, io, sys
from transports.cli.main import main

for words, path in ((["openapi"], "docs/openapi.json"), (["llms"], "llms.txt"), (["reference"], "")):
    sys.argv[1:], text = words, io.TextIOWrapper(io.BytesIO())
    with contextlib.redirect_stdout(text), contextlib.suppress(SystemExit):
        main()
    text.flush()
    if path:
        open(path, "wb").write(text.buffer.getvalue())
sys.exit(code)
"""
"""Runs tests, and writes what is generated: in one process, since each imports the whole service."""
CHECKS = ("test_rows.py", "test_examples.py", "test_bad_input.py", "test_tiers.py", "test_doors.py", "test_texts.py")
METHOD_TABLES = ("tests/sandbox/test_methods_table.py", "tests/clients/ocs/test_methods.py", "tests/faults/test_complete.py")
"""What is held of every method of the wire."""
STORE_HANDLER = '''
"""How many notes an organisation wrote."""

from typing_extensions import TypedDict

from operations.deps import Ctx
from registry.operation import Input
from registry.operation import Example, operation
from storage.notes import count_written_notes


class AllNotes(Input):
    """Nothing to choose."""


class NoteCount(TypedDict):
    """How many notes there are."""

    notes: int


@operation("GET", "/v1/note-count", examples=[Example("How many?", {}, {"notes": 3})])
async def count_notes(ctx: Ctx, params: AllNotes) -> NoteCount:
    """Count the notes that your organisation wrote about lines."""
    del params
    return {"notes": await ctx.deps.store.read(count_written_notes, organisation=ctx.organisation)}
'''
STORE_FUNCTION = '''

@value_or(0)
def count_written_notes(*, organisation: str) -> sa.Executable:
    """How many entries of histories an organisation has."""
    return sa.select(sa.func.count()).select_from(SUBSCRIBER_NOTE).where(SUBSCRIBER_NOTE.c.organisation == organisation)
'''
STORE_TEST = """
from pathlib import Path

from operations.subscribers import note_counts, notes
from registry.catalogue import Catalogue, Toolset
from registry.limits import Tier
from tests.world import open_world

CATALOGUE = Catalogue([Toolset("subscribers", "Lines.", (notes, note_counts))])


async def test_every_note_is_counted(tmp_path: Path) -> None:
    async with open_world(tmp_path, CATALOGUE) as world, world.client((await world.caller(Tier.PRO)).secret) as http:
        await http.post("/v1/subscribers/8988303000000912345/notes", json={"note": "seen"})
        assert (await http.get("/v1/note-count")).json() == {"notes": 1}
"""
READ_HANDLER = '''
"""The IMSI prefixes that SIMs roam with."""

from clients.ocs.resellers import SponsorPrefix
from operations.deps import Ctx
from operations.upstream.connection import connect_upstream
from operations.upstream.paging import Data
from operations.upstream.resellers import ResellerQuery, read_of_reseller, resolve_reseller
from registry.errors import NotFound, OcsError
from registry.operation import Example, operation


@operation(
    "GET",
    "/v1/sponsor-prefixes",
    upstream=True,
    raises=[NotFound, OcsError],
    examples=[Example("Which?", {}, {"data": [{"prefix": 90170}]})],
)
async def list_sponsor_prefixes(ctx: Ctx, params: ResellerQuery) -> Data[list[SponsorPrefix]]:
    """List the IMSI prefixes that your SIMs roam with."""
    upstream = await connect_upstream(ctx)
    reseller = await resolve_reseller(upstream, params.reseller_id)
    return {"data": await read_of_reseller(params.reseller_id, upstream.ocs.reseller.list_sponsor_prefix(reseller))}
'''
CLIENT_SHAPE = '''
@keeps_unknown
class SponsorPrefix(TypedDict, total=False):
    """The IMSI prefix of a sponsor."""

    prefix: int


'''
CLIENT_METHOD = '''
    async def list_sponsor_prefix(self, reseller_id: int) -> list[SponsorPrefix]:
        """The IMSI prefixes of a reseller's sponsors."""
        return await self._link.read("listSponsorPrefix", reseller_id, parse_rows(AnswerShape(SponsorPrefix)))
'''
SIMULATED_METHOD = """

@bare_method("listSponsorPrefix")
def list_sponsor_prefix(world: World, caller: NetworkToken, number: int) -> object:
    reseller = find_reseller(world, caller, number)
    return [{"prefix": world.sponsors[number].prefix} for number in world.sponsored.get(reseller.id, ())]
"""
READ_TEST = """
from pathlib import Path

from operations.accounts import sponsor_prefixes
from registry.catalogue import Catalogue, Toolset
from tests.stage import OperatorStage, open_operator

CATALOGUE = Catalogue([Toolset("accounts", "Accounts.", (sponsor_prefixes,))])


async def test_the_prefixes_are_those_of_the_sponsors_of_a_reseller(tmp_path: Path) -> None:
    async with open_operator(tmp_path, CATALOGUE, OperatorStage) as stage:
        assert (await stage.http.get("/v1/sponsor-prefixes")).json() == {"data": [{"prefix": 90170}, {"prefix": 90177}]}
        assert stage.calls("listSponsorPrefix") == [7001]
"""


def try_out(tree: Path, *arguments: str) -> None:
    """Runs the tests of these arguments, and writes what is generated."""
    environment, program = {**os.environ, "PYTHONPATH": str(tree)}, TRY.format(arguments=list(arguments))
    done = subprocess.run([sys.executable, "-c", program], cwd=tree, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


def written_by_hand(tree: Path) -> set[str]:
    """The files of the copy that differ from the tree's, without those that are generated."""
    files = [file.relative_to(tree).as_posix() for file in tree.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    changed = {file for file in files if not (ROOT / file).is_file() or not cmp(tree / file, ROOT / file)}
    return {file for file in changed if not file.startswith(GENERATED)}


def write_file(tree: Path, path: str, text: str) -> None:
    assert not (tree / path).exists()
    (tree / path).write_text(text.lstrip())


def insert_text(tree: Path, path: str, text: str, *, before: str = "") -> None:
    """Text in front of the one line that begins with `before`, or at the end of a file."""
    found = (tree / path).read_text()
    assert not before or found.count(f"\n{before}") == 1
    at = found.index(f"\n{before}") + 1 if before else len(found)
    (tree / path).write_text(found[:at] + text.lstrip("\n" if before else "") + found[at:])


def tell_of_it(tree: Path, line: str) -> None:
    changelog = tree / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## [Unreleased]\n", f"## [Unreleased]\n\n### Added\n\n- {line}\n", 1))


def add_store_operation(tree: Path) -> None:
    """The walk of an operation on our own store."""
    write_file(tree, "operations/subscribers/note_counts.py", STORE_HANDLER)
    insert_text(tree, "storage/notes.py", STORE_FUNCTION)
    storage = tree / "storage/notes.py"
    storage.write_text(storage.read_text().replace("upsert, writes", "upsert, value_or, writes"))
    write_file(tree, "tests/subscribers/test_note_counts.py", STORE_TEST)
    tell_of_it(tree, "`count_notes` counts the notes of an organisation.")


def add_upstream_read(tree: Path) -> None:
    """The walk of a read of the charging system."""
    write_file(tree, "operations/accounts/sponsor_prefixes.py", READ_HANDLER)
    insert_text(tree, "clients/ocs/resellers.py", CLIENT_SHAPE, before="ACCOUNTS_SHAPE =")
    insert_text(tree, "clients/ocs/resellers.py", CLIENT_METHOD)
    insert_text(tree, "simulators/network/methods/resellers.py", SIMULATED_METHOD)
    row = '    CallRow("list_sponsor_prefixes", ("getResellerInfo", "listSponsorPrefix")),\n'
    insert_text(tree, "tests/faults/rows.py", row, before='    CallRow("list_sponsors", ')
    write_file(tree, "tests/accounts/test_sponsor_prefixes.py", READ_TEST)
    tell_of_it(tree, "`list_sponsor_prefixes` lists the IMSI prefixes of a reseller's sponsors.")


class Walks(NamedTuple):
    """A copy of the sources with both operations, and the files that each walk wrote by hand."""

    tree: Path
    store: set[str]
    upstream: set[str]


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Walks]:
    """Both in one copy, whose generated files are written once: to make and to check them takes half a minute."""
    tree = Path(shutil.copytree(ROOT, tmp_path_factory.mktemp("walks") / "tree", ignore=SKIPPED))
    take_compiled(tree)
    add_store_operation(tree)
    store = written_by_hand(tree)
    add_upstream_read(tree)
    upstream = written_by_hand(tree) - store | {"CHANGELOG.md"}
    yield Walks(tree, store, upstream)
    if sys.pycache_prefix is not None:  # what is compiled there ends with the tree
        shutil.rmtree(f"{sys.pycache_prefix}{tree}", ignore_errors=True)


def test_an_operation_with_a_new_function_of_our_own_store_is_added_by_hand_in_four_files_at_most(walks: Walks) -> None:
    assert len(walks.store) <= 4


def test_a_read_with_a_new_method_of_the_wire_is_added_by_hand_in_six_files_at_most(walks: Walks) -> None:
    assert len(walks.upstream) <= 6


def test_what_was_added_is_in_the_generated_files_and_passes_the_tests_of_all_operations(walks: Walks) -> None:
    tree, added = walks.tree, ("count_notes", "list_sponsor_prefixes")
    own = ("tests/subscribers/test_note_counts.py", "tests/accounts/test_sponsor_prefixes.py")
    checks = (f"tests/contract/{name}" for name in CHECKS)
    chosen = " or ".join((*added, *(Path(path).stem for path in (*own, *METHOD_TABLES))))
    try_out(tree, "-q", "-p", "no:cacheprovider", "-k", chosen, *checks, *own, *METHOD_TABLES)
    texts = [(tree / path).read_text() for path in ("docs/openapi.json", "llms.txt", "docs/reference/README.md")]
    assert all(operation in text for text in texts for operation in added)
