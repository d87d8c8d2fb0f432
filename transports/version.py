"""The version of this program, and the revision of its source."""

import re
from pathlib import Path

UNKNOWN_REVISION = "unknown"
REVISION_PATTERN = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
REVISION_DIGITS = 12
CHECKOUT = Path(__file__).resolve().parent.parent


def build_sha(setting: str, root: Path = CHECKOUT) -> str:
    """What /health shows: the setting, else the first characters of the checkout's commit, else `unknown`. Git itself is not run."""
    if setting != UNKNOWN_REVISION:
        return setting
    try:
        return commit_of(root)[:REVISION_DIGITS] or UNKNOWN_REVISION
    except (OSError, UnicodeDecodeError):
        return UNKNOWN_REVISION


def commit_of(root: Path) -> str:
    """The commit that is checked out; empty where this is no checkout. A worktree keeps its HEAD apart from the branches."""
    git = root / ".git"
    if git.is_file():
        git = (root / git.read_text().removeprefix("gitdir:").strip()).resolve()
    head = (git / "HEAD").read_text().strip()
    if not head.startswith("ref:"):
        return head if REVISION_PATTERN.fullmatch(head) else ""
    name = head.removeprefix("ref:").strip()
    common = git / "commondir"
    shared = (git / common.read_text().strip()).resolve() if common.is_file() else git
    loose = shared / name
    found = loose.read_text().strip() if loose.is_file() else packed_commit(shared / "packed-refs", name)
    return found if REVISION_PATTERN.fullmatch(found) else ""


def packed_commit(file: Path, name: str) -> str:
    """The commit of a branch that git has packed away; empty where it is not there."""
    lines = (line.split(" ") for line in file.read_text().splitlines()) if file.is_file() else ()
    return next((words[0] for words in lines if len(words) == 2 and words[1] == name), "")


VERSION = "1.1.0"
