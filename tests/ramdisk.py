"""Where tests write: memory, if there is plenty, since every commit of theirs waits until the disk has it."""

import atexit
import os
import re
import shutil
import tempfile
from pathlib import Path

MOUNT, MEMORY = Path("/dev/shm"), Path("/proc/meminfo")
NEEDED = 2 << 30
PREFIX = "reseller-tests-"


def plenty() -> bool:
    """Whether the mount has room, and the machine that much memory."""
    if not (os.access(MOUNT, os.W_OK) and MEMORY.exists()):
        return False
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", MEMORY.read_text(), re.MULTILINE)
    return found is not None and min(int(found[1]) << 10, shutil.disk_usage(MOUNT).free) >= NEEDED


def use() -> None:
    """For this process and all that it starts; gone when it ends. A TMPDIR that was given stays."""
    if "TMPDIR" in os.environ or not plenty():
        return
    for left in MOUNT.glob(PREFIX + "*"):  # of a run that was killed
        if not Path(f"/proc/{left.name.removeprefix(PREFIX)}").exists():
            shutil.rmtree(left, ignore_errors=True)
    folder = MOUNT / f"{PREFIX}{os.getpid()}"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)  # the PostgreSQL server has a user of its own, who must be able to walk here
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["TMPDIR"], tempfile.tempdir = str(folder), None
