"""Who besides this user may write a file or directory."""

import os
from pathlib import Path

OTHERS_WRITE, OTHERS_ENTER = 0o022, 0o011
ROOT = 0


def writable_by_others(path: Path, *, whoever_owns: bool = False) -> str | None:
    """What is wrong and what mends it, or nothing. Root may do anything anyway; on a read-only file system nobody writes.

    `whoever_owns`: another owner is no fault, as of files that somebody else hands over.
    """
    if os.name != "posix" or os.statvfs(path).f_flag & os.ST_RDONLY:
        return None
    found, user = path.stat(), os.geteuid()
    if not whoever_owns and found.st_uid not in (user, ROOT):
        return f"{path} belongs to another user (uid {found.st_uid}, this is uid {user}): chown {user} {path}"
    if found.st_mode & OTHERS_WRITE:
        return f"{path} can be written by others (mode {found.st_mode & 0o777:o}): chmod go-w {path}"
    return None


def may_be_entered(directory: Path) -> bool:
    """Whether others reach the files in it at all."""
    return bool(directory.stat().st_mode & OTHERS_ENTER)
