"""A program of the next release: this one and one migration more."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

from storage.engine.revision import HEAD

ROOT = Path(__file__).parent.parent.parent
PACKAGES = ("clients", "operations", "registry", "simulators", "storage", "transports")
NEXT = f"{int(HEAD) + 1:04d}"
MIGRATION = """
import sqlalchemy as sa
from alembic import op

revision, down_revision, expands = "{next}", "{head}", {expands}


def upgrade() -> None:
    op.add_column("intent", sa.Column("colour", sa.Text, nullable=False, server_default="green"))
    op.create_index("intent_colour", "intent", ["colour"])
    op.create_table("paint", sa.Column("name", sa.Text, primary_key=True))


def downgrade() -> None:
    op.drop_table("paint")
    op.drop_index("intent_colour", "intent")
    op.drop_column("intent", "colour")
"""


@dataclass(frozen=True, slots=True)
class NextRelease:
    tree: Path

    @property
    def program(self) -> list[str]:
        begin = f"import sys; sys.path.insert(0, {str(self.tree)!r}); from transports.cli.main import main; main()"
        return [sys.executable, "-P", "-c", begin]

    def run(self, *words: str, environment: Mapping[str, str]) -> str:
        done = subprocess.run([*self.program, *words], cwd=self.tree, env=environment, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def take_compiled(tree: Path) -> None:
    """What Python has compiled of this program goes with a copy of its files: it holds for files of the same time and length."""
    for file in tree.rglob("*.py"):
        own, copied = (Path(cache_from_source(str(path))) for path in (ROOT / file.relative_to(tree), file))
        if own.exists():
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(own, copied)


def next_release(place: Path, *, expands: bool) -> NextRelease:
    """Made of this program's own files."""
    tree = place / "next"
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tree / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    take_compiled(tree)
    known = tree / "storage" / "engine" / "revision.py"
    text = known.read_text().replace(f"range(1, {int(NEXT)})", f"range(1, {int(NEXT) + 1})")
    known.write_text(text)
    assert text != (ROOT / "storage" / "engine" / "revision.py").read_text() and int(NEXT) == int(HEAD) + 1
    (tree / "storage" / "migrations" / "versions" / f"{NEXT}_paint.py").write_text(MIGRATION.format(next=NEXT, head=HEAD, expands=expands))
    return NextRelease(tree)
