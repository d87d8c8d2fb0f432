"""Names of customers: kept or not as an admin has chosen, erased at once, and never brought back for whoever was erased."""

from dataclasses import replace

import pytest

from registry.caller import Role, Tier
from simulators.network.entities import Line
from storage.engine.sql import Connection
from tests.fleet.stage import NAMES, ReadModelStage
from tests.fleet.truth import rows_of

MINUTE = 60
PERSONAL = ("name", "company", "email", "phone")


def named_line(stage: ReadModelStage) -> Line:
    line = stage.line()
    line.name, line.email = "Ingrid Solberg", "Ingrid.Solberg@post.example"
    return line


async def texts(stage: ReadModelStage) -> set[str]:
    """Every text of a customer that stands in the tables."""

    def read(connection: Connection) -> set[str]:
        details = rows_of(connection, "select * from fleet_line_detail")
        found = {row[name] for row in details for name in PERSONAL if row[name] is not None}
        return found | {row["search"] for row in rows_of(connection, "select search from fleet_line") if row["search"]}

    return await stage.world.store.read(read)


async def choose(stage: ReadModelStage, *, kept: bool) -> None:
    said = await stage.write("PUT", NAMES, kept=kept)
    assert said.json() == {"object": "fleet.names", "kept": kept}
    assert (await stage.status())["names_kept"] is kept


@pytest.mark.long
async def test_an_admin_erases_all_names_and_has_them_back(both: ReadModelStage) -> None:
    line = named_line(both)
    await both.count()
    await both.sync()
    assert (await both.status())["names_kept"] is True
    assert await both.iccids(text="solberg") == [line.iccid]
    await choose(both, kept=False)
    assert await texts(both) == set()
    for _ in range(2):
        both.clock.advance(6 * MINUTE)
        await both.sync()
        assert await texts(both) == set()
    before = len(both.calls("listSubscriber"))
    assert await both.iccids(text="solberg") == [line.iccid]  # looked for live
    assert len(both.calls("listSubscriber")) > before
    (row,) = (await both.query(text="solberg"))["data"]
    assert row["name"] is None
    await choose(both, kept=True)
    assert await both.iccids(text="solberg") == [line.iccid]
    assert "Ingrid Solberg" in await texts(both)


async def test_a_list_that_is_on_its_way_brings_no_names_back(stage: ReadModelStage) -> None:
    named_line(stage)
    await stage.status()

    async def erase() -> None:
        await choose(stage, kept=False)
        stage.trouble("listSubscriber", code=3, times=None)  # no further list sets it right

    stage.sleep.act = erase
    stage.trouble("listSubscriber", delay=1.0)
    await stage.sync()
    assert stage.sleep.act is None
    assert (await stage.status())["lines"] == 13
    assert await texts(stage) == set()


async def test_what_the_deployment_keeps_holds_where_nobody_has_chosen(stage: ReadModelStage) -> None:
    line = named_line(stage)
    stage.world.pipeline.deps = replace(stage.world.pipeline.deps, keeps_names=False)
    await stage.count()
    await stage.sync()
    assert ((await stage.status())["names_kept"], await texts(stage)) == (False, set())
    assert await stage.iccids(text="ingrid solberg") == [line.iccid]
    said = await stage.write("PUT", f"/v1/subscribers/{line.iccid}/contact", firstName="Kari")
    assert said.status_code == 200
    assert await texts(stage) == set()
    stage.world.pipeline.deps = replace(stage.world.pipeline.deps, keeps_names=True)
    stage.clock.advance(6 * MINUTE)
    await stage.sync()
    assert "Kari" in await texts(stage)


async def test_only_an_admin_chooses(stage: ReadModelStage) -> None:
    member = await stage.world.caller(Tier.ENTERPRISE, Role.MEMBER, organisation=stage.who.organisation)
    async with stage.world.client(member.secret) as http:
        refused = await http.put(NAMES, json={"kept": False})
    assert (refused.status_code, refused.json()["code"]) == (403, "role_required")


async def erase_buyer(stage: ReadModelStage, email: str) -> None:
    body = {"name": "Shop", "slug": "nordic-shop", "currency": "EUR"}
    made = await stage.http.post("/v1/storefronts", json=body, headers={"Idempotency-Key": "shop"})
    assert made.status_code in (200, 201), made.text
    await stage.write("POST", f"/v1/storefronts/{made.json()['id']}/erase-buyer", email=email)


@pytest.mark.long
async def test_a_buyer_who_was_erased_stays_erased(stage: ReadModelStage) -> None:
    line = named_line(stage)
    await stage.count()
    await stage.sync()
    await erase_buyer(stage, "ingrid.solberg@post.example")
    for _ in range(3):
        assert not {each for each in await texts(stage) if "solberg" in each.lower()}
        assert await stage.count(text="solberg") == 0
        line.balance += 1_000_000  # the network goes on telling the name
        stage.clock.advance(6 * MINUTE)
        await stage.sync()
    await stage.write("PUT", f"/v1/subscribers/{line.iccid}/contact", firstName="Ingrid", lastName="Solberg")
    assert await stage.count(text="solberg") == 0
    await stage.sync()
    await stage.query(text=line.iccid, fresh=True, limit=20)
    assert not {each for each in await texts(stage) if "solberg" in each.lower()}


@pytest.mark.long
@pytest.mark.parametrize("by_us", [True, False])
async def test_the_names_of_a_line_that_has_ended_go_for_good(stage: ReadModelStage, by_us: bool) -> None:
    line = named_line(stage)
    await stage.count()
    await stage.sync()
    if by_us:
        await stage.write("PUT", f"/v1/subscribers/{line.iccid}/status", status="END_OF_LIFE", irreversible=True)
        assert not {each for each in await texts(stage) if "solberg" in each.lower()}
    else:
        line.statuses[-1].status = "END_OF_LIFE"
    for _ in range(2):
        stage.clock.advance(6 * MINUTE)
        await stage.sync()
    assert not {each for each in await texts(stage) if "solberg" in each.lower()}


async def test_no_secret_of_a_card_is_stored(stage: ReadModelStage) -> None:
    for line in stage.network.lines.values():
        line.sim.confirmation_code = f"CONF-{line.id}"
    await stage.count()
    await stage.sync()
    await stage.query(fresh=True, limit=20)

    def dump(connection: Connection) -> str:
        schema = "select name from sqlite_master where type = 'table'" if connection.dialect_name == "sqlite" else TABLES
        names = [row["name"] for row in rows_of(connection, schema)]
        return "\n".join(repr(rows_of(connection, f'select * from "{name}"')) for name in names)

    everything = await stage.world.store.read(dump)
    line = stage.line()
    assert line.iccid in everything
    cards = [each.sim for account in (8101,) for each in stage.network.lines_of(account)]
    secrets = {
        code for sim in cards for code in (sim.pin1, sim.pin2, sim.puk1, sim.puk2, sim.activation_code, sim.confirmation_code) if code
    }
    assert len(secrets) > 50
    assert {code for code in secrets if len(code) > 5 and code in everything} == set()
    assert not [name for name in ("pin1", "puk1", "activationCode", "confirmationCode", "smdpServer") if name in everything]


TABLES = "select tablename as name from pg_tables where schemaname = 'public'"
