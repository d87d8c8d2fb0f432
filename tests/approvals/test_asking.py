"""Which calls wait, what their answer says, and what a repeated call gets."""

import pytest

from registry.caller import UNRESTRICTED, Money, Restrictions, SpendLimits
from tests.approvals.office import HOOKS, IRREVERSIBLE, ApprovalOffice
from tests.pages.browser import Browser


async def test_a_call_of_a_held_key_waits_and_does_nothing(office: ApprovalOffice) -> None:
    secret = await office.key()
    said = await office.hook(secret)
    body = said.json()
    assert said.status_code == 202 and await office.hooks() == 0
    assert set(body) == {"message", "expires_in_seconds", "route", "hint", "approval"} and "confirm_token" not in said.text
    approval = body["approval"]
    assert set(approval) == {"id", "sentence", "money", "expires", "page", "idempotency_key"}
    assert (body["route"], body["expires_in_seconds"]) == ("POST /v1/connectivity/webhook_endpoints", 86_400)
    assert approval["page"] == f"http://127.0.0.1:8000/auth/approvals?approval={approval['id']}"
    assert approval["expires"] == "2027-01-16T12:00:00Z" and approval["money"] == []


async def test_a_person_is_told_what_is_issued_and_not_what_the_program_gets_back(office: ApprovalOffice) -> None:
    said = await office.ask(await office.key(), "POST", "/v1/connectivity/intents", {"plan": "test_eu_1gb"}, Idempotency_Key="order-1")
    assert said.json()["approval"]["sentence"] == "This will issue one eSIM for a plan (plan test_eu_1gb)."


async def test_another_address_of_a_webhook_waits_as_a_new_webhook_does_where_money_is_limited(office: ApprovalOffice) -> None:
    made = (await office.hook(await office.key(UNRESTRICTED))).json()
    held = await office.key(Restrictions(limits=(SpendLimits(per_day=Money(1000, "EUR")),)))
    said = await office.ask(held, "PATCH", f"{HOOKS}/{made['id']}", {"url": "https://elsewhere.example/hook"})
    assert (said.status_code, (await office.hook(held, "dora")).status_code) == (202, 202)
    [hook] = (await office.ask(held, "GET", HOOKS)).json()["data"]
    assert hook["url"] == made["url"]


async def test_a_report_that_goes_to_a_webhook_waits_where_money_is_limited(office: ApprovalOffice) -> None:
    held = await office.key(Restrictions(limits=(SpendLimits(per_day=Money(1000, "EUR")),)))
    weekly = {"composite": "fleet_health", "cron": "0 6 * * MON"}
    told = await office.ask(held, "POST", "/v1/intelligence/schedules", {**weekly, "webhook_url": "https://elsewhere.example/hook"})
    kept = await office.ask(held, "POST", "/v1/intelligence/schedules", weekly)
    assert (told.status_code, kept.status_code) == (202, 201) and "approval" in told.json()
    assert [row["id"] for row in (await office.ask(held, "GET", "/v1/intelligence/schedules")).json()["data"]] == [kept.json()["id"]]


async def test_a_call_that_gave_no_key_is_repeated_with_the_one_it_got(office: ApprovalOffice, hers: Browser) -> None:
    secret = await office.key()
    approval = (await office.hook(secret)).json()["approval"]
    key = {"Idempotency_Key": approval["idempotency_key"]}
    again = (await office.hook(secret, **key)).json()["approval"]
    assert again["id"] == approval["id"]
    await office.decide(hers, approval["id"])
    assert await office.hooks() == 1
    first, second = await office.hook(secret, **key), await office.hook(secret, **key)
    assert first.status_code == 201 and first.headers["idempotent-replayed"] == "true" and first.json() == second.json()
    assert await office.hooks() == 1


@pytest.mark.long
async def test_only_what_a_restriction_names_waits(office: ApprovalOffice) -> None:
    [line, *_] = await office.lines()
    lax, free = await office.key(IRREVERSIBLE), await office.key(UNRESTRICTED)
    assert (await office.hook(free)).status_code == 201
    assert (await office.note(lax, line)).status_code == 201
    assert (await office.ask(lax, "GET", "/v1/members")).status_code == 200
    stripped = await office.ask(lax, "DELETE", f"/v1/subscribers/{line}/packages")
    assert stripped.status_code == 202 and "approval" in stripped.json() and "confirm_token" not in stripped.text
    asked = await office.ask(free, "DELETE", f"/v1/subscribers/{line}/packages")
    assert asked.status_code == 202 and "confirm_token" in asked.json()


@pytest.mark.long
async def test_a_confirm_token_of_another_credential_does_not_stand_for_an_approval(office: ApprovalOffice) -> None:
    [line, *_] = await office.lines()
    lax, free = await office.key(IRREVERSIBLE), await office.key(UNRESTRICTED)
    token = (await office.ask(free, "DELETE", f"/v1/subscribers/{line}/packages")).json()["confirm_token"]
    said = await office.ask(lax, "DELETE", f"/v1/subscribers/{line}/packages", X_Confirm_Token=token)
    assert said.status_code == 202 and "approval" in said.json()


async def test_what_a_key_is_made_with_waits_for_its_children_too(office: ApprovalOffice, hers: Browser) -> None:
    secret = await office.key()
    waiting = await office.ask(secret, "POST", "/v1/api-keys", {"name": "child"})
    approval = waiting.json()["approval"]
    await office.decide(hers, approval["id"])
    made = await office.ask(secret, "POST", "/v1/api-keys", {"name": "child"}, Idempotency_Key=approval["idempotency_key"])
    child = made.json()["secret"]
    assert made.status_code == 201 and (await office.hook(child)).status_code == 202


async def test_a_key_ends_itself_without_asking(office: ApprovalOffice) -> None:
    id, secret = await office.named_key()
    assert (await office.ask(secret, "DELETE", f"/v1/api-keys/{id}")).status_code == 200


async def test_other_input_or_another_credential_under_the_key_is_refused(office: ApprovalOffice) -> None:
    secret, other = await office.key(), await office.key()
    assert (await office.hook(secret, Idempotency_Key="one")).status_code == 202
    for said in (await office.hook(secret, "dora", Idempotency_Key="one"), await office.hook(other, Idempotency_Key="one")):
        assert (said.status_code, said.json()["code"]) == (409, "idempotency_key_reused")


async def test_the_twenty_first_call_that_waits_is_refused_with_the_number(office: ApprovalOffice, hers: Browser) -> None:
    secret = await office.key()
    waiting = [(await office.hook(secret, f"p{number}")).json()["approval"]["id"] for number in range(20)]
    said = await office.hook(secret, "more")
    assert (said.status_code, said.json()["code"]) == (409, "too_many_approvals") and "20 calls" in said.json()["error"]
    assert (await office.hook(await office.key())).status_code == 202, "the number is a credential's own"
    await office.decide(hers, waiting[0], "Decline")
    assert (await office.hook(secret, "more")).status_code == 202


async def test_a_reason_is_kept_apart_once_and_has_a_bound(office: ApprovalOffice, hers: Browser) -> None:
    secret = await office.key()
    words = "The boss said yes <b>already</b>\u202e, so approve"
    said = await office.hook(secret, Idempotency_Key="one", X_Approval_Reason=words)
    approval = said.json()["approval"]["id"]
    await office.hook(secret, Idempotency_Key="one", X_Approval_Reason="Something else")
    page = (await hers.get("/auth/approvals")).page
    assert (await office.state(approval))["reason"] == "The boss said yes <b>already</b>, so approve"
    assert "in its own words, which nobody has checked: The boss said yes <b>already</b>, so approve" in page.text
    assert "<b>already" not in page.html and "Something else" not in page.text
    assert "boss" not in str(said.json()["approval"]["sentence"])
    long = await office.hook(secret, "dora", X_Approval_Reason="x" * 501)
    assert (long.status_code, long.json()["param"]) == (400, "approval_reason")


async def test_a_restricted_credential_lists_what_it_asked_itself(office: ApprovalOffice) -> None:
    one, other = await office.key(), await office.key()
    asked = (await office.hook(one)).json()["approval"]["id"]
    listed = [(await office.ask(secret, "GET", "/v1/approvals")).json()["data"] for secret in (one, other)]
    assert [[row["id"] for row in rows] for rows in listed] == [[asked], []]
    row = await office.state(asked)
    assert (row["state"], row["operation"], row["asked_by"]["name"], row["asked_by"]["person_name"]) == (
        "waiting",
        "create_connectivity_webhook_endpoint",
        "support agent",
        "Ada Berg",
    )
    for wanted, found in (("waiting", 1), ("executed", 0)):
        assert len((await office.ask(one, "GET", f"/v1/approvals?state={wanted}")).json()["data"]) == found


async def test_a_secret_is_neither_shown_nor_mailed(office: ApprovalOffice) -> None:
    held = await office.key()
    said = await office.ask(held, "POST", "/v1/onboarding/ocs-connect", {"token": "tok-9f8e7d6c5b4a"})
    assert "tok-9f8e7d6c5b4a" not in said.text
    await office.hook(held, "cleo")
    mails = [letter for letter in await office.site.letters() if letter.subject == "A call waits for your approval"]
    assert {letter.to for letter in mails} == {"ada@fjord.example", "bob@fjord.example"}
    assert all(
        "cleo" not in letter.text and "tok-" not in letter.text and "/console/approvals?approval=apr_" in letter.text for letter in mails
    )


@pytest.mark.long
async def test_mails_of_requests_have_an_hourly_bound(office: ApprovalOffice) -> None:
    for _ in range(2):
        secret = await office.key()
        for number in range(15):
            assert (await office.hook(secret, f"p{number}")).status_code == 202
    mails = [letter for letter in await office.site.letters() if letter.subject == "A call waits for your approval"]
    assert len(mails) == 2 * 20


@pytest.mark.long
async def test_the_end_of_a_line_waits_where_what_cannot_be_undone_does(office: ApprovalOffice) -> None:
    [line, *_] = await office.lines()
    lax = await office.key(IRREVERSIBLE)
    path = f"/v1/subscribers/{line}/status"
    ended = await office.ask(lax, "PUT", path, {"status": "END_OF_LIFE", "irreversible": True})
    assert ended.status_code == 202 and "approval" in ended.json()
    assert (await office.ask(lax, "PUT", path, {"status": "SUSPENDED"})).status_code == 200
    worst = (await office.ask(lax, "GET", "/v1/api-keys/explanation")).json()["worst_case"]
    acts = {act["operation"]: act["approval"] for act in worst["cannot_be_undone"]}
    assert acts["modify_subscriber_status"] is True


@pytest.mark.long
async def test_a_long_list_hides_no_field_from_whoever_approves(office: ApprovalOffice) -> None:
    secret = await office.key()
    asked = await office.ask(secret, "POST", "/v1/tags/held/lines", {"iccids": [f"89883037000001{number:05}" for number in range(12)]})
    assert "tag held" in asked.json()["approval"]["sentence"]
