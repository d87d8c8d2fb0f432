"""Making, listing and deleting schedules, and what is refused."""

from pathlib import Path

import httpx
import pytest
from inline_snapshot import snapshot

from registry.caller import Restrictions
from tests.schedules.bureau import DAILY, SCHEDULES, Body, Bureau


async def refused(http: httpx.AsyncClient, **wanted: object) -> str:
    answer = await http.post(SCHEDULES, json={**DAILY, **wanted})
    assert answer.status_code == 400, answer.text
    body: Body = answer.json()
    assert body["error"].startswith(f"{body['param']}: ")
    assert body["hint"]
    error: str = body["error"]
    return error


@pytest.mark.rule("4.7.50")
async def test_a_new_schedule_shows_its_secret_and_its_link_this_once(on_both: Bureau) -> None:
    made = await on_both.create(webhook_url="https://hooks.example.com/reports", share=True, input={"accountId": 8101})
    secret, link = made.pop("secret"), made.pop("share_url")
    assert secret.startswith("whsec_")
    base, token = link.rsplit("/", 1)
    assert base == "https://reseller.test/v1/intelligence/share"
    assert len(token) == 43
    assert made == snapshot(
        {
            "id": "sch_01mcckg2g00000000000000009",
            "object": "intelligence.schedule",
            "composite": "fleet_health",
            "input": {"accountId": 8101},
            "cron": "0 6 * * *",
            "timezone": "Europe/Berlin",
            "next_run": "2027-01-16T05:00:00Z",
            "webhook_url": "https://hooks.example.com/reports",
            "webhook_status": "enabled",
            "shared": True,
            "last_report": None,
            "made_by": "usr_01mcckg2g00000000000000005",
            "made_with": "key_01mcckg2g00000000000000007",
            "status": "active",
            "ends_at": None,
            "created": "2027-01-15T12:00:00Z",
        }
    )
    answer = await on_both.http.get(SCHEDULES)
    assert answer.json() == {"object": "list", "data": [made], "has_more": False}


async def test_without_webhook_and_share_there_is_nothing_to_keep(bureau: Bureau) -> None:
    made = await bureau.create(cron="*/15 * * * *", timezone="UTC")
    assert made == snapshot(
        {
            "id": "sch_01mcckg2g00000000000000009",
            "object": "intelligence.schedule",
            "composite": "fleet_health",
            "input": {},
            "cron": "*/15 * * * *",
            "timezone": "UTC",
            "next_run": "2027-01-15T12:15:00Z",
            "webhook_url": None,
            "webhook_status": None,
            "shared": False,
            "last_report": None,
            "made_by": "usr_01mcckg2g00000000000000005",
            "made_with": "key_01mcckg2g00000000000000007",
            "status": "active",
            "ends_at": None,
            "created": "2027-01-15T12:00:00Z",
        }
    )


async def test_the_list_has_pages_and_shows_how_the_newest_run_ended(bureau: Bureau) -> None:
    made = [(await bureau.create())["id"] for _ in range(3)]
    bureau.clock.advance(86_400)
    runs = bureau.replica()
    assert await runs.fire() == 3
    assert await runs.step()
    first = (await bureau.http.get(SCHEDULES, params={"limit": 2})).json()
    assert ([each["id"] for each in first["data"]], first["has_more"]) == (made[:0:-1], True)
    rest = (await bureau.http.get(SCHEDULES, params={"starting_after": made[1]})).json()
    assert ([each["id"] for each in rest["data"]], rest["has_more"]) == (made[:1], False)
    ended = [each["last_report"] for each in [*first["data"], *rest["data"]] if each["last_report"] is not None]
    assert ended == snapshot([{"id": "rep_01mcf5wsg00000000100000001", "state": "done", "finished": "2027-01-16T12:00:00Z"}])


@pytest.mark.rule("4.7.51")
async def test_a_deleted_schedule_is_gone_with_its_webhook_and_its_reports(on_both: Bureau) -> None:
    made = await on_both.create(webhook_url="https://hooks.example.com/reports", share=True)
    await on_both.run(made)
    answer = await on_both.http.delete(f"{SCHEDULES}/{made['id']}")
    assert answer.json() == {"id": made["id"], "object": "intelligence.schedule", "deleted": True}
    assert (await on_both.http.get(SCHEDULES)).json()["data"] == []
    assert await on_both.kept() == []
    assert (await on_both.http.delete(f"{SCHEDULES}/{made['id']}")).status_code == 404


async def test_bad_schedules_are_refused_with_what_to_do_about_them(bureau: Bureau) -> None:
    found = {
        name: await refused(bureau.http, **wanted)
        for name, wanted in {
            "six fields": {"cron": "0 0 6 * * *"},
            "no field": {"cron": ""},
            "hour 25": {"cron": "0 25 * * *"},
            "too often": {"cron": "*/10 * * * *"},
            "too near midnight": {"cron": "0,55 0,23 * * *"},
            "never": {"cron": "0 0 31 2 *"},
            "never in fifty years": {"cron": "0 0 */31 2 MON#5"},
            "the machine's own zone": {"timezone": "localtime"},
            "a path": {"timezone": "../../etc/passwd"},
            "a small letter": {"timezone": "europe/berlin"},
            "a bad account": {"input": {"accountId": "x"}},
            "an unknown field": {"input": {"colour": 1}},
            "a later page": {"input": {"starting_after": "x"}},
            "an address inside": {"webhook_url": "https://10.0.0.1/"},
            "this machine": {"webhook_url": "https://localhost./"},
            "plain http": {"webhook_url": "http://hooks.example.com/"},
        }.items()
    }
    assert found == snapshot(
        {
            "six fields": "cron: '0 0 6 * * *' has 6 fields; minute, hour, day, month and weekday are 5",
            "no field": "cron: '' has 0 fields; minute, hour, day, month and weekday are 5",
            "hour 25": "cron: '0 25 * * *' cannot be read; look at its hour",
            "too often": "cron: '*/10 * * * *' comes again after 10 minutes; at least 15 must be between two reports",
            "too near midnight": "cron: '0,55 0,23 * * *' comes again after 5 minutes; at least 15 must be between two reports",
            "never": "cron: '0 0 31 2 *' cannot be read; look at its day-of-month",
            "never in fifty years": "cron: '0 0 */31 2 MON#5' names no day of the next fifty years",
            "the machine's own zone": "timezone: 'localtime' is no time zone of the IANA database",
            "a path": "timezone: '../../etc/passwd' is no time zone of the IANA database",
            "a small letter": "timezone: 'europe/berlin' is no time zone of the IANA database",
            "a bad account": 'input.accountId: got "x"; must be an integer',
            "an unknown field": "input.colour: unknown field",
            "a later page": "input.starting_after: a report always begins at the first row",
            "an address inside": "webhook_url: host '10.0.0.1' is not a public address. Give a host that can be reached from the internet.",
            "this machine": "webhook_url: host 'localhost.' ends with a dot. Write the name without it.",
            "plain http": "webhook_url: scheme 'http' is not accepted, deliveries go out over TLS. Use https://.",
        }
    )
    assert (await bureau.http.get(SCHEDULES)).json()["data"] == []


async def test_only_the_eight_composites_for_operators_are_scheduled(bureau: Bureau) -> None:
    told = await refused(bureau.http, composite="detect_country_entry")
    assert told.startswith('composite: got "detect_country_entry"; must be one of')


async def test_an_organisation_has_at_most_fifty(bureau: Bureau) -> None:
    for _ in range(50):
        await bureau.create()
    answer = await bureau.http.post(SCHEDULES, json=DAILY)
    assert (answer.status_code, answer.json()["code"]) == (409, "intelligence_schedule_limit")


async def test_a_repeated_call_makes_one_schedule_and_answers_the_same_secret(bureau: Bureau) -> None:
    wanted, key = {**DAILY, "webhook_url": "https://hooks.example.com/r", "share": True}, {"Idempotency-Key": "once"}
    first = await bureau.http.post(SCHEDULES, json=wanted, headers=key)
    again = await bureau.http.post(SCHEDULES, json=wanted, headers=key)
    assert (first.status_code, again.status_code, again.headers["idempotent-replayed"]) == (201, 201, "true")
    assert first.content == again.content
    assert len((await bureau.http.get(SCHEDULES)).json()["data"]) == 1


@pytest.mark.parametrize("restrictions", [Restrictions(account_ids=(8101,)), Restrictions(read_only=True), Restrictions(toolsets=())])
async def test_a_key_that_may_see_less_than_a_report_makes_none(bureau: Bureau, restrictions: Restrictions) -> None:
    _, secret = await bureau.world.key(bureau.caller.person, bureau.caller.organisation, restrictions=restrictions)
    async with bureau.world.client(secret) as http:
        answer = await http.post(SCHEDULES, json=DAILY)
    assert (answer.status_code, answer.json()["code"]) == (403, "credential_restricted")


async def test_no_secret_and_no_token_stands_in_the_database(bureau: Bureau) -> None:
    made = await bureau.create(webhook_url="https://hooks.example.com/reports", share=True)
    await bureau.world.journal.flush()
    await bureau.world.store.aclose()
    whole = Path(bureau.url.removeprefix("sqlite:///")).read_bytes()
    assert made["id"].encode() in whole
    assert made["secret"].encode() not in whole
    assert made["share_url"].rsplit("/", 1)[1].encode() not in whole
