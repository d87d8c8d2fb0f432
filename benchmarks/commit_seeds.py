"""Seeds that nobody chose: number i of a commit is the first eight hexadecimal digits of the SHA-256 of "COMMIT:i"."""

import hashlib
import subprocess
from pathlib import Path

START = 1_799_971_200
"""2027-01-15T00:00:00 UTC: planted networks always start then, so that a seed gives the same figures whenever it is tried."""
CHECKOUT = Path(__file__).resolve().parent.parent


def head() -> str:
    """The commit that is checked out."""
    command = ["git", "--no-optional-locks", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.strip()


def seeds_of(commit: str, count: int) -> list[int]:
    """The first `count` seeds of a commit."""
    return [int(hashlib.sha256(f"{commit}:{number}".encode()).hexdigest()[:8], 16) for number in range(1, count + 1)]
