"""The engine of the command, for some seconds: all that it drives answers, and all ledgers agree. Whether memory is flat takes longer.

The command itself is for whoever plays it at full length: `python3 ./run endure`.
"""

import asyncio
from pathlib import Path

import pytest

from tests.endurance.engine import Plan, staged
from tests.endurance.memory import Memory, Sample, judged

SHORT = Plan("sqlite", seed=7, seconds=3.0, capacity_seconds=0.5, share=0.3, work=None, records=0, outages=True)


@pytest.mark.long
async def test_a_few_seconds_of_everything_leave_ledgers_that_agree(tmp_path: Path) -> None:
    go = asyncio.Event()
    async with staged(SHORT, tmp_path) as run:
        go.set()
        result = await run.play(go)
    assert set(result["outages"]) == {"charging system", "payment processor", "receivers of webhooks"}
    assert (result["broken"], result["unspecified"], result["complaints"]) == ([], {}, [])
    answered = {row["kind"] for row in result["rows"] if row["row"] == "status" and row["status"] in (200, 201)}
    assert answered >= {"GET intent", "POST intent", "MCP tools/call", "POST records"}
    assert [row["process"] for row in result["rows"] if row["row"] == "memory"] == ["server"]


def test_memory_is_flat_when_its_last_third_is_not_above_its_first_one() -> None:
    def grown(per_second: float, warm: float = 0.0) -> Memory:
        return judged("server", [Sample(float(at), 300.0, 100.0 + per_second * at + warm * min(at, 200)) for at in range(0, 1000, 2)])

    assert grown(0.0).flat and grown(0.0, warm=1.0).flat
    leaking = grown(0.02)
    assert (leaking.flat, leaking.mb_per_hour, leaking.samples) == (False, 72.0, 400)
    assert (len(leaking.course_mb), leaking.course_mb[0], leaking.course_mb[7], leaking.course_mb[-1]) == (15, 100.7, 110.0, 119.3)
    assert (leaking.resident_first_mb, leaking.resident_last_mb) == (300.0, 300.0)
