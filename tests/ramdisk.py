"""Where tests write: a folder of the run's own, in memory if there is plenty, since every commit of theirs waits until the disk has it."""

import atexit
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from tests.harness import orphan_cleanup

MOUNT, MEMORY = Path("/dev/shm"), Path("/proc/meminfo")
NEEDED = 2 << 30
PREFIX = "reseller-tests-"


def plenty() -> bool:
    """Whether the mount has room, and the machine that much memory."""
    if not (os.access(MOUNT, os.W_OK) and MEMORY.exists()):
        return False
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", MEMORY.read_text(), re.MULTILINE)
    return found is not None and min(int(found[1]) << 10, shutil.disk_usage(MOUNT).free) >= NEEDED


@cache
def use() -> Path:
    """For this process and all that it starts; a TMPDIR that was given holds it. However this process ends, its clean-up leaves nothing."""
    place = Path(tempfile.gettempdir()) if "TMPDIR" in os.environ or not plenty() else MOUNT
    clear(place)
    made = Path(tempfile.mkdtemp(dir=place))
    made.chmod(0o755)  # the PostgreSQL server has a user of its own, who must be able to walk here
    taken(made)
    folder = made.rename(place / f"{PREFIX}{os.getpid()}")  # only now: what has the name has an owner
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
    words = [sys.executable, "-IS", orphan_cleanup.__file__, str(folder)]
    none = subprocess.DEVNULL  # in a session of its own: Ctrl-C and a terminal that closes do not reach it
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=none, stderr=none, start_new_session=True)
    atexit.register(process.communicate)  # closes its input, as our death would
    return folder


def clear(place: Path) -> None:
    """What runs have left whose clean-up was killed, too."""
    for left in place.glob(f"{PREFIX}*"):
        descriptor = taken(left)
        if descriptor is not None:
            orphan_cleanup.inherit(left)
            os.close(descriptor)


def taken(folder: Path) -> int | None:
    """The folder's lock, which lasts as long as this process, or nothing where another one lives that has it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
