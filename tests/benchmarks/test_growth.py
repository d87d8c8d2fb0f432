"""The measurements of growth: what calls leave behind, and what a full database costs."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.fill import CALLS, opened
from benchmarks.fill import measured as calls_measured
from benchmarks.fill import page as calls_page
from benchmarks.growth import AIM_READ
from benchmarks.growth import measured as growth_measured
from benchmarks.growth import page as growth_page
from benchmarks.names import OURS_SQLITE
from tests.databases import migrated_sqlite


@pytest.mark.long
async def test_a_read_leaves_a_tenth_of_a_write_behind(tmp_path: Path) -> None:
    url = migrated_sqlite(tmp_path)
    before, after = await growth_measured(url, tmp_path, 400)
    told = growth_page(before, after, 400)
    assert "audit_read" in told and "claim" in told
    assert after["audit_read"] - before.get("audit_read", 0) <= 400 * AIM_READ
    assert after["audit"] - before["audit"] < after["audit_read"] - before["audit_read"]  # 12 whole rows beside 388 short ones


@pytest.mark.long
async def test_every_call_is_made_in_databases_that_have_the_rows_they_say(tmp_path: Path) -> None:
    with ExitStack() as stack:
        urls = [opened(stack, tmp_path, rows, postgres=False) for rows in (1000, 4000)]
        samples = await calls_measured(urls, tmp_path, (1000, 4000), 1)
    assert {sample.call for sample in samples} == set(CALLS)
    told = calls_page(samples)
    assert told.count(OURS_SQLITE) == len(CALLS) and "4000 rows" in told
