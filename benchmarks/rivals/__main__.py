"""`python -m benchmarks.rivals NAME --port N --data DIR`: one rival under uvicorn with uvloop and httptools, one worker."""

import argparse
import importlib
from pathlib import Path

import uvicorn


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    given = parser.parse_args()
    app = importlib.import_module(f"benchmarks.rivals.{given.name}").make(given.data)
    uvicorn.run(
        app,
        host="127.0.0.1",
        port=given.port,
        loop="uvloop",
        http="httptools",
        ws="none",
        access_log=False,
        log_level="warning",
        server_header=False,
        backlog=2048,
    )


main()
