"""A simulated network with something to find in it, and the file that says what."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from transports.cli.failure import Failure

if TYPE_CHECKING:
    from clients.sandbox.ocs.seed.plant_truth import Truth
    from clients.sandbox.ocs.state import World


def planted(seed: int, start: int, *, lines: int, history_days: int, truth: Path | None) -> "World":
    """The world; its truth goes into the file, and nowhere else."""
    from clients.sandbox.ocs.seed.plant import plant  # only where it is asked for, as in sandbox.py

    if truth is not None and not truth.parent.is_dir():
        raise Failure(f"--truth {truth}: cannot be written (no such folder)")
    try:
        made = plant(seed, start, lines=lines, history_days=history_days)
    except ValueError as error:
        raise Failure(f"--plant: {error}") from None
    if truth is not None:
        write(truth, made.truth)
    return made.world


def write(path: Path, truth: "Truth") -> None:
    """Replace the file whole; only its owner may read it."""
    import orjson

    fresh = path.with_name(f"{path.name}.new")
    try:
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(orjson.dumps(truth.as_json(), option=orjson.OPT_INDENT_2) + b"\n")
        fresh.replace(path)
    except OSError as error:
        raise Failure(f"--truth {path}: cannot be written ({error.strerror})") from None
