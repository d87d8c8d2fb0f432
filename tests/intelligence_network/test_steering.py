"""Advice on steering works and costs nobody more: another list where the list itself is wrong, a push once, and nothing that is dearer."""

import pytest

from simulators.network.entities import DAY_SECONDS, Line
from tests.intelligence_network.stage import COVERAGE_AUDIT, DiagnosisStage
from tests.intelligence_network.steering import (
    INSIDE_LIST,
    MICRO,
    OUTSIDE_LIST,
    audit_row,
    carry_out,
    cost_row,
    deactivate,
    list_of,
    norwegian_networks,
    plan_row,
    price,
    settle,
    split_fleet,
)
from tests.network_facts import HOUR, MINUTE


@pytest.mark.long
async def test_where_the_list_leads_past_the_package_another_list_is_named_and_then_a_push(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    _, wrong = await split_fleet(stage)
    row = await audit_row(stage, wrong[0])
    assert (row["verdict"], row["action"], row["why"]) == ("mis_steered", "change_steering_list", "list_leads_there")
    assert row["do"] == [
        {"operation": "modify_subscriber_steering_list", "arguments": {"iccid": wrong[0].iccid, "listId": INSIDE_LIST}},
        {"operation": "push_steering_to_subscriber", "arguments": {"iccid": wrong[0].iccid}},
    ]
    assert stage.network.networks[good].name == row["leads_to"]["operator"]
    assert row["saving_operator"] == 40 * 4_000 / MICRO
    assert row["saving_customer"] == row["outside"]["usage_income"] == 40 * 15_000 / MICRO
    assert [one["network_cost_per_mib"] for one in row["could_use"]] == [0.001]


@pytest.mark.long
async def test_a_push_is_not_advised_again_within_a_day_nor_before_the_line_was_seen(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    _, wrong = await split_fleet(stage)
    await carry_out(stage, await audit_row(stage, wrong[0]))
    assert (await audit_row(stage, wrong[0]))["why"] == "pushed_lately"  # the audit itself is kept for a minute
    assert (await audit_row(stage, wrong[1]))["action"] == "change_steering_list"
    stage.world.clock.advance(10 * MINUTE)
    row = await audit_row(stage, wrong[0])
    assert (row["action"], row["why"], row["do"], row["steering_list"]) == ("none", "pushed_lately", [], INSIDE_LIST)
    stage.world.clock.advance(30 * HOUR)
    assert (await audit_row(stage, wrong[0]))["why"] == "pushed_lately"
    await stage.use(1 << 20, bad, wrong[0])
    stage.world.clock.advance(9 * HOUR)  # a line that was used is read again after eight hours
    assert (await audit_row(stage, wrong[0]))["why"] == "push_did_not_help"


@pytest.mark.long
async def test_a_line_whose_list_is_right_is_pushed_to_once(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    right, _ = await split_fleet(stage, inside=8, outside=0)
    await settle(stage, right[0], INSIDE_LIST, right[0].packages[0].zone_id, bad, 40)
    await stage.advance(1)
    row = await audit_row(stage, right[0])
    assert (row["action"], row["why"]) == ("push_steering", "list_leads_elsewhere")
    assert row["do"] == [{"operation": "push_steering_to_subscriber", "arguments": {"iccid": right[0].iccid}}]
    await carry_out(stage, row)
    assert (await audit_row(stage, right[0]))["why"] == "pushed_lately"


@pytest.mark.long
async def test_a_list_that_was_given_and_not_pushed_is_to_be_pushed(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    _, wrong = await split_fleet(stage)
    row = await audit_row(stage, wrong[0])
    await carry_out(stage, {"do": row["do"][:1]})
    assert (await audit_row(stage, wrong[0]))["action"] == "push_steering"


@pytest.mark.long
@pytest.mark.parametrize("times", [1.01, 18])
async def test_a_network_that_is_dearer_for_the_operator_is_never_advised(stage: DiagnosisStage, times: float) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, bad, 5_000, selling=50_000)
    price(stage, good, int(5_000 * times), selling=10)
    _, wrong = await split_fleet(stage)
    row = await audit_row(stage, wrong[0])
    assert (row["verdict"], row["action"], row["why"], row["do"]) == ("mis_steered", "none", "dearer", [])
    assert (row["saving_operator"], row["saving_customer"]) == (None, None)
    assert [one["network_cost_per_mib"] for one in row["could_use"]] == [5_000 * times // 1 / MICRO]


@pytest.mark.long
@pytest.mark.parametrize("place", [0, 1], ids=["where it would be", "where it is"])
async def test_an_inactive_rule_is_no_price_of_nothing(stage: DiagnosisStage, place: int) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    _, wrong = await split_fleet(stage)
    deactivate(stage, (good, bad)[place])
    row = await audit_row(stage, wrong[0])
    assert (row["action"], row["why"]) == ("none", "price_not_known")
    assert [one["network_cost_per_mib"] for one in row["could_use"]] == [None if place == 0 else 0.001]


@pytest.mark.long
async def test_a_list_that_leads_to_a_dear_network_elsewhere_is_not_advised(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    right, wrong = await split_fleet(stage, inside=12)
    swedish = [one.network_id for one in stage.network.networks.values() if one.iso2 == "se"][:2]
    price(stage, swedish[0], 100)
    price(stage, swedish[1], 90_000)
    traveller = wrong[0]
    zone = stage.network.zones[traveller.packages[0].zone_id]
    zone.network_ids = (*zone.network_ids, *swedish)
    list_of(stage, INSIDE_LIST, good, swedish[1])
    await stage.use(60 << 20, swedish[0], traveller)
    await stage.use(1 << 20, bad, traveller)
    await stage.advance(1)
    assert (await audit_row(stage, traveller))["why"] == "no_list_known"  # where the list leads in Sweden is not known
    for line in right[:6]:
        await stage.use(1 << 20, swedish[1], line)
    stage.world.clock.advance(9 * HOUR)
    row = await audit_row(stage, traveller)
    assert (row["action"], row["why"]) == ("none", "dearer")
    assert (await audit_row(stage, wrong[1]))["action"] == "change_steering_list"


@pytest.mark.long
async def test_of_few_lines_it_is_not_concluded_where_a_list_leads(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    _, wrong = await split_fleet(stage, inside=2)
    assert (await audit_row(stage, wrong[0]))["why"] == "no_list_known"


@pytest.mark.long
async def test_a_line_without_a_list_is_given_the_one_that_leads_to_its_package(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    _, wrong = await split_fleet(stage)
    stage.network.accounts[8101].steering_list_id = wrong[0].steering_list_id = None
    row = await audit_row(stage, wrong[0])
    assert (row["action"], row["why"], row["steering_list"]) == ("change_steering_list", "no_list", None)


@pytest.mark.long
async def test_a_mis_steered_line_is_steered_in_every_answer_and_offered_no_other_package(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000, selling=300_000)
    price(stage, bad, 5_000, selling=300_000)
    _, wrong = await split_fleet(stage)
    line = wrong[0]
    cost, plan, audit = await cost_row(stage, line), await plan_row(stage, line), await audit_row(stage, line)
    assert (cost["action"], cost["do"]) == (audit["action"], audit["do"])
    assert (cost["saving_operator"], cost["saving_customer"]) == (audit["saving_operator"], audit["saving_customer"])
    assert (plan["verdict"], plan["saving_customer"], plan["best_is_present"]) == ("mis_steered", 0.0, True)
    assert plan["best"] == plan["now"] and plan["now"]["usage_income"] > 5.0


@pytest.mark.long
async def test_a_line_on_a_dear_covered_network_is_led_to_a_cheaper_one(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    _, dear = await split_fleet(stage)
    for line in dear:
        zone = stage.network.zones[line.packages[0].zone_id]
        zone.network_ids = (good, bad)
        await settle(stage, line, OUTSIDE_LIST, zone.id, bad, 40)
    await stage.advance(1)
    row = await cost_row(stage, dear[0])
    assert (row["action"], row["why"], row["do"][0]["arguments"]["listId"]) == ("change_steering_list", "cheaper_network", INSIDE_LIST)
    assert (row["saving_operator"], row["saving_customer"]) == (40 * 4_000 / MICRO, 0.0)
    await carry_out(stage, row)
    assert (await cost_row(stage, dear[0]))["why"] == "pushed_lately"


@pytest.mark.long
async def test_a_plan_of_its_own_may_charge_a_customer_more_elsewhere(stage: DiagnosisStage) -> None:
    """What no package would pay on the other network is charged by a tariff, which is the line's only if its records say so."""
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    _, wrong = await split_fleet(stage)
    for line in wrong:
        line.packages[0].data_limit = 10 << 20
        line.cdrs[:] = [cdr._replace(subscriber_cost=cdr.subscriber_cost // 2) for cdr in line.cdrs]
    assert (await audit_row(stage, wrong[0]))["why"] == "price_not_known"


@pytest.mark.long
async def test_a_network_has_one_code_in_an_answer(stage: DiagnosisStage) -> None:
    good, bad, *_ = norwegian_networks(stage)
    price(stage, good, 1_000)
    price(stage, bad, 5_000)
    _, wrong = await split_fleet(stage)
    network = stage.network.networks[bad]
    assert len(network.codes) > 1
    for place, line in enumerate(wrong):
        seen = line.sighting
        assert seen is not None
        seen.mcc, seen.mnc = network.codes[min(place, 1)]
    data = (await stage.answer(COVERAGE_AUDIT, limit=200))["data"]
    told = {(row["network"]["mcc"], row["network"]["mnc"]) for row in data["lines"]}
    listed = {(row["network"]["mcc"], row["network"]["mnc"]) for row in data["networks"]}
    assert told == {network.codes[1]} and listed >= told and network.codes[0] not in listed


def charged(line: Line) -> int:
    return sum(cdr.subscriber_cost for cdr in line.cdrs)


@pytest.mark.long
async def test_a_package_is_offered_only_where_it_costs_less_than_what_was_charged(stage: DiagnosisStage) -> None:
    good, *_ = norwegian_networks(stage)
    price(stage, good, 1_000, selling=200_000)
    _, lines = await split_fleet(stage, inside=0, outside=6)
    for mebibytes, line in zip((10, 20, 40, 80, 160, 320), lines, strict=True):
        await settle(stage, line, None, line.packages[0].zone_id, good, 1)
        await stage.ocs.subscriber.clean_all_packages(line.id)
        line.cdrs.clear()
        await stage.use(mebibytes << 20, good, line)
    stage.world.clock.advance(DAY_SECONDS)
    works = [one for one in stage.network.templates.values() if good in stage.network.zones[one.zone_id].network_ids and not one.deleted]
    fitting = [one.cost for one in works if one.sponsor_id == stage.line.sim.sponsor_id and one.cost]
    cheapest, found = min(fitting), list[str]()
    for line in lines:
        row = await audit_row(stage, line)
        found.append(row["action"])
        assert row["verdict"] == "no_package" and row["saving_operator"] in (None, 0)
        assert (row["why"], row["offer"] is None) == (("dearer", True) if charged(line) <= cheapest else ("cheaper_package", False))
        if row["offer"] is not None:
            left = charged(line) - round(row["offer"]["package_income"] * MICRO)
            assert round(row["saving_customer"] * MICRO) == left > 0
            assert (await cost_row(stage, line))["do"] == row["do"]
    assert set(found) == {"none", "offer_package"}
    bought = (await audit_row(stage, lines[-1]))["do"][0]["arguments"]
    await bought_by(stage, lines[-1], bought["packageTemplateId"])
    told = await cost_row(stage, lines[-1])
    assert (told["action"], told["why"], told["do"]) == ("none", "has_package", [])


async def bought_by(stage: DiagnosisStage, line: Line, template: int) -> None:
    """The line gets a package, and a call of ours has it read again."""
    await stage.ocs.packages.affect_to_subscriber(template, line.id)
    allowed = {"data": True, "moc": True, "mtc": True, "sms": True}
    assert (await stage.http.put(f"/v1/subscribers/{line.iccid}/traffic-restrictions", json=allowed)).status_code == 200
