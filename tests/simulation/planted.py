"""Bugs that are kept as patches: each is applied to a copy of the tree, where the simulation has to find it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATCHES = ROOT / "tests" / "simulation" / "planted"
MOST_SEEDS = 20_000
PACKAGES = ("registry", "operations", "transports", "storage", "clients", "simulators", "tests")
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.db*")
FOUND = re.compile(r"^seed (\d+) FAILED.*\n\s+(.*)$", re.MULTILINE)


def planted_bugs() -> list[Path]:
    return sorted(PATCHES.glob("*.patch"))


def hunks(patch: str) -> Iterator[tuple[str, str, str]]:
    """File, text as it is, text as it becomes. Line numbers are not used: the text must be there once."""
    for part in re.split(r"^--- a/", patch, flags=re.MULTILINE)[1:]:
        file = part.splitlines()[0].split("\t")[0]
        for hunk in re.split(r"^@@ .*\n", part, flags=re.MULTILINE)[1:]:
            lines = hunk.splitlines(keepends=True)
            yield file, "".join(line[1:] for line in lines if line[0] in " -"), "".join(line[1:] for line in lines if line[0] in " +")


def patched(patch: Path, root: Path) -> dict[str, str]:
    """The files as the patch makes them."""
    files: dict[str, str] = {}
    for file, before, after in hunks(patch.read_text()):
        text = files.get(file) or (root / file).read_text()
        if text.count(before) != 1:
            raise ValueError(f"{patch.name} does not fit {file} any more: make it anew")
        files[file] = text.replace(before, after)
    return files


def find(patch: Path, *, seeds: int = MOST_SEEDS, cores: int = 1) -> tuple[int, str] | None:
    """The first seed that finds the bug, and what it says; None when none does."""
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        copy = Path(folder) / "tree"
        for package in PACKAGES:  # what else there is, such as environments of other tools, is large
            shutil.copytree(ROOT / package, copy / package, ignore=LEFT_OUT)
        for file, text in patched(patch, copy).items():
            (copy / file).write_text(text)
        command = ["-P", "-m", "tests.simulation.main", "--seeds", str(seeds), "--stop", "--forget", "--fresh", "--cores", str(cores)]
        environment = os.environ | {"PYTHONPATH": str(copy)} | kept_bytecode(Path(folder), copy)
        told = subprocess.run([sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True, check=False)
        found = FOUND.search(told.stdout)
        if found is None and told.returncode:
            raise RuntimeError(told.stderr)
        return None if found is None else (int(found[1]), found[2])


def kept_bytecode(folder: Path, copy: Path) -> dict[str, str]:
    """Settings of a process in the copy: it reads what was compiled for this tree, and writes nothing."""
    if sys.pycache_prefix is None:
        for place in (each for top in PACKAGES for each in (ROOT / top).rglob("__pycache__")):
            target = copy / place.relative_to(ROOT)
            if target.parent.is_dir():
                target.symlink_to(place)
        return {"PYTHONDONTWRITEBYTECODE": "1"}
    prefix = folder / "bytecode"
    place = prefix / copy.relative_to("/")
    place.parent.mkdir(parents=True)
    place.symlink_to(Path(sys.pycache_prefix) / ROOT.relative_to("/"))
    return {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": str(prefix)}


def run(cores: int) -> int:
    """All of them; how many were not found."""
    missed = 0
    for patch in planted_bugs():
        found = find(patch, cores=cores)
        missed += found is None
        how = f"not found within {MOST_SEEDS} seeds" if found is None else f"found after {found[0] + 1} seeds: {found[1]}"
        sys.stdout.write(f"{patch.stem}: {how}\n")
        sys.stdout.flush()
    return missed
