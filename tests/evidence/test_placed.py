"""What our own other operations put on lines is no evidence of a draw."""

from registry.caller import Tier
from simulators.network.entities import Line
from storage.placed_packages import insert_placed_package, placed_packages_among
from tests.evidence.issuing import Issuing
from tests.network_facts import ACCOUNT, HOUR, MINUTE, TEMPLATE
from transports.worker.retention import PLACED_SECONDS, retention_chore


async def place(issuing: Issuing, path: str = "packages", template: int = TEMPLATE) -> Line:
    """Another organisation of the account puts a package on a SIM of the stock that it names."""
    other = await issuing.world.caller(Tier.PRO, mode="managed", account=ACCOUNT)
    line = next(line for line in issuing.network.lines_of(ACCOUNT) if line.sim.status == "FREE")
    async with issuing.world.client(other.secret) as http:
        body = {"packageTemplateId": template}
        answer = await http.post(f"/v1/subscribers/{line.iccid}/{path}", json=body, headers={"Idempotency-Key": "mine"})
    assert answer.status_code == 201, answer.text
    return line


async def test_an_esim_that_another_caller_put_a_package_on_is_never_given_to_a_draw_without_answer(issuing: Issuing) -> None:
    await issuing.lose("order", drawn=False)
    issuing.world.clock.advance(20)
    assert (await place(issuing)).sim.status == "AFFECTED"
    assert await issuing.look() == 0
    assert await issuing.state("order") == "outcome_unknown"
    assert await issuing.work(16 * MINUTE) == 1
    assert await issuing.state("order") == "failed"


async def test_the_draw_is_found_beside_what_another_caller_put_a_package_on(issuing: Issuing) -> None:
    await issuing.lose("order", drawn=True)
    drawn = issuing.drawn()
    placed = await place(issuing)
    assert await issuing.look() == 1
    row = await issuing.row("order")
    assert [row.iccid] == drawn != [placed.iccid]


async def test_a_series_that_another_caller_started_is_not_taken_for_a_draw(issuing: Issuing) -> None:
    recurring = next(
        template.id
        for template in issuing.network.templates.values()
        if template.recurring and template.reseller_id == issuing.network.accounts[ACCOUNT].reseller_id
    )
    await issuing.lose("order", drawn=False)
    line = await place(issuing, "packages/recurring", recurring)
    package = line.packages[-1].id
    assert await issuing.world.store.read(placed_packages_among, packages=[package]) == {package}
    assert await issuing.work(16 * MINUTE) == 1
    assert await issuing.state("order") == "failed"


async def test_placed_packages_are_forgotten_after_two_days_and_a_second_note_of_one_changes_nothing(issuing: Issuing) -> None:
    world = issuing.world
    for package in (7, 7, 8):
        await world.store.write(insert_placed_package, package_id=package, now=world.clock.now())
    assert await world.store.read(placed_packages_among, packages=[7, 8, 9]) == {7, 8}
    assert await world.store.read(placed_packages_among, packages=[]) == frozenset()
    chore = retention_chore(world.store, world.clock, print)
    world.clock.advance(PLACED_SECONDS - HOUR)
    await chore.run()
    assert await world.store.read(placed_packages_among, packages=[7]) == {7}
    world.clock.advance(2 * HOUR)
    await chore.run()
    assert await world.store.read(placed_packages_among, packages=[7]) == frozenset()
