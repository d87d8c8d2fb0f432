"""What a process and its children have used, from /proc and their CPU clocks."""

import os
import time
from pathlib import Path
from typing import NamedTuple


def tree(pid: int) -> list[int]:
    """The process and its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except FileNotFoundError:  # the thread has ended
            continue
        for child in children:
            found += tree(int(child))
    return found


def cpu_seconds(pid: int) -> float:
    """User and system time of all threads, those that have ended too, in nanosecond steps (man 3 clock_getcpuclockid)."""
    return sum(time.clock_gettime(~process << 3 | 2) for process in tree(pid))


def resident_mb(pid: int) -> float:
    """Resident memory."""
    return memory_mb(pid, "VmRSS:")


def peak_mb(pid: int) -> float:
    """The most that was resident since `restart_peak`."""
    return memory_mb(pid, "VmHWM:")


def restart_peak(pid: int) -> None:
    """Count the peak from now on (man 5 proc, clear_refs)."""
    for process in tree(pid):
        Path(f"/proc/{process}/clear_refs").write_text("5")


def memory_mb(pid: int, name: str) -> float:
    """One line of the status, summed over the process and its children."""
    total = 0
    for process in tree(pid):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith(name):
                total += int(line.split()[1])
    return total / 1024


def machine() -> str:
    """The processor and how many of it there are."""
    models = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    return f"{len(os.sched_getaffinity(0))} x {models[0].partition(':')[2].strip() if models else 'unknown processor'}"


class ProcessorSeconds(NamedTuple):
    """Of all processors of the machine since it started: how long they were at work, and how long in all."""

    busy: float
    all: float


def processor_seconds() -> ProcessorSeconds:
    """The first line of /proc/stat (man 5 proc_stat); to wait for a disk is no work. Guests stand in the numbers before theirs."""
    spent = [int(number) for number in Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]]
    ticks = os.sysconf("SC_CLK_TCK")
    return ProcessorSeconds((sum(spent) - spent[3] - spent[4]) / ticks, sum(spent) / ticks)
