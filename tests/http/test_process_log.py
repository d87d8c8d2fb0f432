"""A process says one JSON object a line, whoever speaks: libraries with a traceback, threads that die, the interpreter, the end."""

import subprocess
import sys

import orjson
import pytest

from tests.harness.processes import ROOT

SPEAKING = """
import logging, sys, threading, warnings
from registry.clock import SystemClock
from transports.logs import Logs
from transports.logs import log_process_output

log_process_output(Logs(sys.stderr.buffer.write, SystemClock(), secrets=["the loaded secret"]))

def fail():
    raise RuntimeError("several\\nlines, and the loaded secret")

class Unraisable:
    def __del__(self):
        fail()

for name in ("psycopg", "psycopg.pool", "storage.engine.checkpointer", "alembic", "stripe"):
    try:
        fail()
    except RuntimeError:
        logging.getLogger(name).warning("%s failed", name, exc_info=True)
logging.getLogger("psycopg").info("nothing to see")
warnings.warn("old")
thread = threading.Thread(target=fail, name="checkpointer")
thread.start()
thread.join()
Unraisable()
fail()
"""


@pytest.mark.long
def test_whatever_a_process_says_is_a_line_of_json_with_a_level_and_no_secret() -> None:
    said = subprocess.run([sys.executable, "-c", SPEAKING], cwd=ROOT, capture_output=True, check=False)
    lines = [orjson.loads(line) for line in said.stderr.splitlines()]
    assert [(line["kind"], line["level"]) for line in lines] == [("server", "warning")] * 6 + [("fault", "error")] * 3
    assert [line["logger"] for line in lines[:6]] == [
        "psycopg",
        "psycopg.pool",
        "storage.engine.checkpointer",
        "alembic",
        "stripe",
        "py.warnings",
    ]
    assert lines[6]["thread"] == "checkpointer"
    assert [line["errors"][0]["type"] for line in lines if "errors" in line] == ["RuntimeError"] * 8
    assert b"the loaded secret" not in said.stderr and said.stdout == b"" and said.returncode == 1
