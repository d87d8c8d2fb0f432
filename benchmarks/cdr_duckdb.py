"""`python -m benchmarks.cdr_duckdb JSON`: DuckDB in this process, over a table of its own that holds the same raw rows; prints JSON."""

import json
import sys
import time
from typing import Any

from benchmarks.cdr_fill import BEGINS, SECONDS, raw_rows

QUERY = f"""select iccid, sum(bytes_up)::bigint, sum(bytes_down)::bigint, sum(bytes_up + bytes_down)::bigint as bytes_total, count(*),
 sum(sum(bytes_up + bytes_down)) over ()::bigint from cdr_event
 where organisation = ? and occurred_at >= {BEGINS} and occurred_at < {BEGINS + SECONDS}
 group by iccid order by bytes_total desc, iccid limit 1001"""


def main() -> None:
    asked = json.loads(sys.argv[1])
    print(json.dumps(fill(**asked) if "rows" in asked else scan(**asked)))


def fill(file: str, organisation: str, rows: int) -> dict[str, int]:
    """Make the file."""
    import duckdb

    with duckdb.connect(file) as database:
        database.execute(f"create table cdr_event as {raw_rows('duckdb', organisation, rows)}")
        return {"rows": count(database)}


def count(database: Any) -> int:
    """How many rows there are."""
    return database.execute("select count(*) from cdr_event").fetchone()[0]


def scan(file: str, organisation: str, seconds: float) -> dict[str, Any]:
    """Ask over and over, twice to get warm."""
    import duckdb

    with duckdb.connect(file, read_only=True) as database:
        rows = [database.execute(QUERY, [organisation]).fetchall() for _ in range(2)][-1]
        times: list[float] = []
        cpu, begun = time.process_time(), time.perf_counter()
        while not times or time.perf_counter() - begun < seconds:
            asked = time.perf_counter()
            database.execute(QUERY, [organisation]).fetchall()
            times.append(time.perf_counter() - asked)
        taken, used = time.perf_counter() - begun, time.process_time() - cpu
    return {"times": sorted(times), "seconds": taken, "cpu": used, "rows": rows}


if __name__ == "__main__":
    main()
