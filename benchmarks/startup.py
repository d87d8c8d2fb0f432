"""From the start of the process to the first answer of /health, beside the bare import of the packages; memory at idle."""

import subprocess
import sys
import time

from benchmarks.contestant import Seed, await_health, command, environment, free_port
from benchmarks.measure import Plan
from benchmarks.names import BARE, FASTMCP, HANDWRITTEN, OURS, TUNED, TUTORIAL
from benchmarks.processes import cpu_seconds, resident_mb

CONTESTANTS = (OURS, HANDWRITTEN, TUNED, TUTORIAL, FASTMCP)
IMPORT = "import sqlmodel, starlette.applications, uvicorn, orjson, pydantic; print(flush=True); input()"
IDLE = 1.0


def start(seed: Seed, plan: Plan) -> list[dict[str, object]]:
    """Everybody once per round, on a database that is there and up to date."""
    found: list[dict[str, object]] = []
    folders = {name: seed.copy(name) for name in CONTESTANTS}
    for number in range(-1, plan.rounds):  # the first round warms the disk's cache and the compiled bytecode; it is not kept
        plan.say(f"start round {number + 1}/{plan.rounds}")
        ms, cpu_ms = bare_import()
        rows: list[dict[str, object]] = [{"contestant": BARE, "round": number, "ms": ms, "cpu_ms": cpu_ms}]
        for name in CONTESTANTS:
            data, port = folders[name], free_port()
            begun = time.perf_counter()
            with (data / "log").open("ab") as log, (data / "out").open("wb") as out:
                process = subprocess.Popen(command(name, port, data), cwd=data, env=environment(), stdout=out, stderr=log)
                try:
                    answered = await_health(port, process, data)
                    cpu = cpu_seconds(process.pid)
                    time.sleep(IDLE)
                    memory = resident_mb(process.pid)
                finally:
                    process.terminate()
                    process.wait(20)
            ms, cpu_ms = round((answered - begun) * 1000, 1), round(cpu * 1000, 1)
            rows.append({"contestant": name, "round": number, "ms": ms, "cpu_ms": cpu_ms, "rss_mb": round(memory, 1)})
        found += rows if number >= 0 else []
    return found


def bare_import() -> tuple[float, float]:
    """Milliseconds, and of CPU, until the imports are done; the end of the interpreter does not count."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-c", IMPORT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment())
    assert process.stdout is not None
    process.stdout.readline()
    taken, cpu = time.perf_counter() - begun, cpu_seconds(process.pid)
    process.communicate(b"\n")
    return round(taken * 1000, 1), round(cpu * 1000, 1)
