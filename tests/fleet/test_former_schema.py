"""While an upgrade goes on: this program on the schema without fleets."""

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest

from storage.engine.migrate import downgrade_database, upgrade_database
from tests.databases import migrated_sqlite, postgres_url, required_database
from tests.fleet.stage import LINES, NAMES, SYNC_STATUS, ReadModelStage, open_read_model_stage
from transports.worker.retention import retention_chore

BEFORE_FLEETS = "0023"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
async def former(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncGenerator[tuple[ReadModelStage, str]]:
    """The stage on a database that has not been upgraded, and its address."""
    if request.param == "sqlite":
        url = migrated_sqlite(tmp_path)
        downgrade_database(url, BEFORE_FLEETS)
        async with open_read_model_stage(tmp_path, url=url) as stage:
            yield stage, url
        return
    with required_database(postgres_url()) as url:
        upgrade_database(url)
        downgrade_database(url, BEFORE_FLEETS)
        async with open_read_model_stage(tmp_path, url=url) as stage:
            yield stage, url


async def test_lines_are_written_and_the_fleet_waits_for_the_upgrade(former: tuple[ReadModelStage, str]) -> None:
    stage, url = former
    line = stage.line()
    await stage.write("PUT", f"/v1/subscribers/{line.iccid}/status", status="SUSPENDED")
    await stage.write("PUT", f"/v1/subscribers/{line.iccid}/contact", firstName="Ingrid")
    await stage.write("PUT", f"/v1/subscribers/{line.iccid}/phone-number", phoneType="real", phoneNumber="+4790000001")
    assert (line.status, line.name) == ("SUSPENDED", "Ingrid")
    for method, path, body in (("GET", LINES, None), ("GET", SYNC_STATUS, None), ("PUT", NAMES, {"kept": False})):
        said = await stage.http.request(method, path, json=body)
        assert (said.status_code, said.json()["hint"]) == (503, "Whoever runs the service runs `reseller db upgrade`")
    before = len(stage.calls())
    await stage.sync()
    await retention_chore(stage.world.store, stage.clock, stage.reports.append).run()
    assert (len(stage.calls()), stage.reports) == (before, [])
    upgrade_database(url)
    await anyio.sleep(0)  # reads of one turn of the loop see one moment of the file
    await stage.sync()
    assert await stage.count(status="SUSPENDED", text=line.iccid) == 1
    assert await stage.differences() == []
