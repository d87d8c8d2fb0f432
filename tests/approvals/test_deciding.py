"""Who decides, what of, and how often: everything but a fresh session of the pages of somebody who may do it themselves is refused."""

import re

import anyio
import pytest

from registry.caller import UNRESTRICTED, Approval, Restrictions, Role, Tier
from storage.members import end_membership
from storage.organisations import set_tier
from tests.approvals.office import ADA_OF_FJORD, APPROVALS_PATH, IRREVERSIBLE, ApprovalOffice
from tests.pages.browser import Browser
from tests.pages.document import Form

ANOTHER = Restrictions(approval=Approval.EVERY_WRITE, another_person=True)


async def waiting(office: ApprovalOffice, secret: str, name: str = "cleo", key: str = "one") -> str:
    return str((await office.hook(secret, name, Idempotency_Key=key)).json()["approval"]["id"])


async def shown(office: ApprovalOffice, approval: str) -> dict[str, str]:
    """What a decision holds."""
    return {"decision": "approve", "shown": (await office.state(approval))["shown"]}


async def session_token(browser: Browser) -> str:
    page = (await browser.get("/auth/session-token")).page
    made = await browser.send(page.form("/auth/session-token"))
    found = re.search(r"eyJ[\w-]+\.[\w-]+\.[\w-]+", made.page.text)
    assert found is not None
    return found[0]


async def test_no_credential_of_a_program_decides(office: ApprovalOffice, hers: Browser) -> None:
    secret = await office.key()
    approval = await waiting(office, secret)
    body = await shown(office, approval)
    for credential in (secret, await office.key(UNRESTRICTED), await office.key(person=office.bob), await session_token(hers)):
        said = await office.ask(credential, "POST", f"/v1/approvals/{approval}/decision", body)
        assert (said.status_code, said.json()["code"]) == (403, "page_required"), said.text
        assert f"{APPROVALS_PATH}?approval={approval}" in said.json()["hint"]
    assert (await office.http.post(f"/v1/approvals/{approval}/decision", json=body)).status_code == 401
    assert (await office.state(approval))["state"] == "waiting" and await office.hooks() == 0


async def test_a_person_approves_and_it_is_done_once(office: ApprovalOffice, hers: Browser) -> None:
    secret = await office.key()
    approval = await waiting(office, secret)
    seen = await office.decide(hers, approval)
    assert seen.status == 200 and "approved and carried out" in seen.page.text
    row = await office.state(approval)
    assert (row["state"], row["decided_by"]["name"]) == ("executed", "Ada Berg")
    assert row["result"] == {"status": 201, "code": None, "error": None}
    assert await office.hooks() == 1
    form = seen.page.forms[0].fields["csrf"]
    again = await hers.post(APPROVALS_PATH, {"csrf": form, "id": approval, "do": "approve", "shown": row["shown"]})
    assert again.status == 409 and "was approved" in again.page.text and await office.hooks() == 1


async def test_what_is_declined_is_refused_for_good(office: ApprovalOffice, hers: Browser) -> None:
    secret = await office.key()
    approval = await waiting(office, secret)
    await office.decide(hers, approval, "Decline")
    assert (await office.state(approval))["state"] == "declined"
    said = await office.hook(secret, Idempotency_Key="one")
    assert (said.status_code, said.json()["code"]) == (403, "approval_declined") and await office.hooks() == 0


async def test_what_has_expired_is_not_approved_and_is_asked_anew(office: ApprovalOffice, hers: Browser) -> None:
    secret = await office.key()
    approval = await waiting(office, secret)
    form = (await hers.get(APPROVALS_PATH)).page.form(APPROVALS_PATH, id=approval)
    office.site.clock.advance(86_400)
    async with office.browser() as fresh:
        await office.site.sign_in(fresh, ADA_OF_FJORD, APPROVALS_PATH)
        form.fields["csrf"] = (await fresh.get(APPROVALS_PATH)).page.forms[0].fields["csrf"]
        seen = await fresh.send(form, form.buttons[0][0])
        assert seen.status == 409 and "has expired" in seen.page.text
        assert (await office.state(approval))["state"] == "expired" and await office.hooks() == 0
        anew = await waiting(office, secret)
        assert anew != approval
        await office.decide(fresh, anew)
    assert await office.hooks() == 1


async def test_of_two_who_decide_at_once_one_does(office: ApprovalOffice, hers: Browser, his: Browser) -> None:
    secret = await office.key()
    approval = await waiting(office, secret)
    forms = [(browser, (await browser.get(APPROVALS_PATH)).page.form(APPROVALS_PATH, id=approval)) for browser in (hers, his)]
    statuses: list[int] = []

    async def press(browser: Browser, form: Form) -> None:
        statuses.append((await browser.send(form, "Approve")).status)

    async with anyio.create_task_group() as group:
        for browser, form in forms:
            group.start_soon(press, browser, form)
    assert sorted(statuses) == [200, 409] and await office.hooks() == 1


async def test_another_person_decides_where_the_key_says_so(office: ApprovalOffice, hers: Browser, his: Browser) -> None:
    approval = await waiting(office, await office.key(ANOTHER))
    seen = await office.decide(hers, approval)
    assert seen.status == 403 and "somebody else approves" in seen.page.text
    assert (await office.state(approval))["state"] == "waiting" and await office.hooks() == 0
    assert [letter.to for letter in await office.site.letters() if "waits" in letter.subject] == ["bob@fjord.example"]
    await office.decide(his, approval)
    assert await office.hooks() == 1


@pytest.mark.long
async def test_somebody_who_may_not_do_it_does_not_approve_it(office: ApprovalOffice) -> None:
    [line, *_] = await office.lines()
    carl = await office.site.person("carl@fjord.example", name="Carl")
    await office.site.join(carl, office.organisation, Role.MEMBER)
    asked = await office.ask(await office.key(IRREVERSIBLE), "DELETE", f"/v1/subscribers/{line}/packages")
    approval = asked.json()["approval"]["id"]
    async with office.browser() as browser:
        await office.site.sign_in(browser, "carl@fjord.example", APPROVALS_PATH)
        seen = await office.decide(browser, approval)
    assert seen.status == 403 and "You may not do this yourself" in seen.page.text
    assert (await office.state(approval))["state"] == "waiting"


async def test_a_stranger_finds_no_request_of_another_organisation(office: ApprovalOffice) -> None:
    approval = await waiting(office, await office.key())
    eve = await office.site.person("eve@fjord.example")
    await office.site.organisation(eve, "Elsewhere", tier=Tier.ENTERPRISE)
    shown_now = (await office.state(approval))["shown"]
    async with office.browser() as browser:
        seen = await office.site.sign_in(browser, "eve@fjord.example", f"{APPROVALS_PATH}?approval={approval}")
        assert "create_connectivity_webhook_endpoint" not in seen.page.text and "is not here" in seen.page.text
        csrf = seen.page.forms[0].fields["csrf"]
        said = await browser.post(APPROVALS_PATH, {"csrf": csrf, "id": approval, "do": "approve", "shown": shown_now})
        assert said.status == 404
    assert await office.hooks() == 0


@pytest.mark.cases
@pytest.mark.parametrize("loss", ["revoked", "left", "tier"])
async def test_an_asker_who_lost_the_right_makes_the_request_void(office: ApprovalOffice, his: Browser, loss: str) -> None:
    store, now = office.site.service.store, office.site.clock.now()
    id, secret = await office.named_key()
    approval = await waiting(office, secret)
    if loss == "revoked":
        assert (await office.ask(await office.key(UNRESTRICTED), "DELETE", f"/v1/api-keys/{id}")).status_code == 200
    elif loss == "left":
        await store.write(end_membership, person=office.ada, organisation=office.organisation, now=now)
    else:
        [line, *_] = await office.lines()
        strip = await office.ask(await office.key(IRREVERSIBLE), "DELETE", f"/v1/subscribers/{line}/packages")
        approval = strip.json()["approval"]["id"]
        await store.write(set_tier, organisation=office.organisation, tier=Tier.PRO)
    seen = await office.decide(his, approval)
    assert seen.status == 409 and "cannot be made any more" in seen.page.text
    row = await office.state(approval)
    assert row["state"] == "void" and row["result"]["status"] in (401, 402) and await office.hooks() == 0


async def test_a_removed_approver_is_signed_out_of_the_organisation(office: ApprovalOffice, his: Browser) -> None:
    approval = await waiting(office, await office.key())
    form = (await his.get(APPROVALS_PATH)).page.form(APPROVALS_PATH, id=approval)
    await office.site.service.store.write(end_membership, person=office.bob, organisation=office.organisation, now=office.site.clock.now())
    seen = await his.send(form, form.buttons[0][0])
    assert seen.status == 404
    listed = await office.ask(await office.key(UNRESTRICTED), "GET", "/v1/approvals?state=waiting")
    assert [row["id"] for row in listed.json()["data"]] == [approval]


async def test_a_decision_asks_for_a_sign_in_of_the_last_quarter_of_an_hour(office: ApprovalOffice, hers: Browser) -> None:
    approval = await waiting(office, await office.key())
    form = (await hers.get(APPROVALS_PATH)).page.form(APPROVALS_PATH, id=approval)
    office.site.clock.advance(15 * 60 + 1)
    page = (await hers.get(f"{APPROVALS_PATH}?approval={approval}")).page
    assert "Sign in again to decide" in page.text and all(one.fields.get("shown") is None for one in page.forms)
    seen = await hers.send(form, form.buttons[0][0])
    assert seen.path.startswith("/auth/sign-in?next=/auth/approvals") and await office.hooks() == 0
    seen = await hers.send(seen.page.form("/auth/sign-in"), email=ADA_OF_FJORD)
    seen = await hers.send(seen.page.form("/auth/sign-in/code"), code=await office.site.code())
    assert seen.path == f"{APPROVALS_PATH}?approval={approval}"
    form = seen.page.form(APPROVALS_PATH, id=approval)
    await hers.send(form, form.buttons[0][0])
    assert await office.hooks() == 1


async def test_the_link_of_the_mail_decides_nothing_and_asks_for_a_session(office: ApprovalOffice) -> None:
    approval = await waiting(office, await office.key())
    [letter, _] = [each for each in await office.site.letters() if "waits" in each.subject]
    link = re.search(r"http\S+", letter.text)
    assert link is not None and link[0].endswith(f"?approval={approval}")
    async with office.browser() as browser:
        seen = await browser.get(link[0])
        assert seen.path == f"/auth/sign-in?next=/console/approvals%3Fapproval%3D{approval}"
        seen = await browser.send(seen.page.form("/auth/sign-in"), email=ADA_OF_FJORD)
        seen = await browser.send(seen.page.form("/auth/sign-in/code"), code=await office.site.code())
        assert seen.path == f"/console/approvals?approval={approval}" and "This is the one that your link names." in seen.page.text
        assert f'href="{seen.path}"' in (await browser.get(f"{APPROVALS_PATH}?approval={approval}")).page.html
    assert (await office.state(approval))["state"] == "waiting" and await office.hooks() == 0


async def test_the_request_that_the_link_names_comes_first_and_is_marked_also_once_it_is_decided(
    office: ApprovalOffice, hers: Browser
) -> None:
    secret = await office.key()
    first, second, third = [await waiting(office, secret, name, name) for name in ("cleo", "dora", "emil")]
    marked, page = "This is the one that your link names.", (await hers.get(f"{APPROVALS_PATH}?approval={first}")).page
    assert page.text.count(marked) == 1
    assert page.text.index(marked) < page.text.index("cleo.example") < min(page.text.index("dora"), page.text.index("emil"))
    assert page.text.count("What money it may make due later, nobody can tell now.") == 3 and "It makes due" not in page.text
    for approval in (first, third):
        await office.decide(hers, approval, "Decline")
    page = (await hers.get(f"{APPROVALS_PATH}?approval={first}")).page
    assert page.text.index("dora.example") < page.text.index(marked) < page.text.index("cleo.example") < page.text.index("emil.example")
    assert page.text.count(marked) == 1 and marked not in (await hers.get(f"{APPROVALS_PATH}")).page.text
    assert second not in page.text


async def test_a_form_from_elsewhere_or_without_its_token_decides_nothing(office: ApprovalOffice, hers: Browser) -> None:
    approval = await waiting(office, await office.key())
    fields = {**(await hers.get(APPROVALS_PATH)).page.form(APPROVALS_PATH, id=approval).fields, "do": "approve"}
    assert (await hers.post(APPROVALS_PATH, {**fields, "csrf": "x"})).status == 403
    assert (await hers.post(APPROVALS_PATH, fields, Origin="https://evil.example")).status == 403
    assert (await hers.post(APPROVALS_PATH, {**fields, "shown": "0" * 64})).status == 409
    assert (await hers.get(f"{APPROVALS_PATH}?approval={approval}&do=approve")).status == 200
    assert (await office.state(approval))["state"] == "waiting" and await office.hooks() == 0


@pytest.mark.long
async def test_state_that_moved_is_shown_again_and_the_old_form_is_refused(office: ApprovalOffice, hers: Browser) -> None:
    [line, *_] = await office.lines()
    secret, free = await office.key(), await office.key(UNRESTRICTED)
    slow = f"/v1/subscribers/{line}/bitrate"
    approval = (await office.ask(secret, "PUT", slow, {"bitrate": 128_000}, Idempotency_Key="n")).json()["approval"]["id"]
    suspended = await office.ask(free, "PUT", f"/v1/subscribers/{line}/status", {"status": "SUSPENDED"})
    assert suspended.status_code == 200, suspended.text
    before = (await office.state(approval))["shown"]
    seen = await office.decide(hers, approval)
    assert seen.status == 409 and "has changed since it was shown" in seen.page.text
    after = seen.page.form(APPROVALS_PATH, id=approval).fields["shown"]
    assert after != before
    old = await office.decide(hers, approval, shown=before)
    assert old.status == 409
    assert (await office.decide(hers, approval)).status == 200
    assert (await office.state(approval))["result"]["status"] == 200


async def test_a_call_that_cannot_be_made_any_more_is_void_and_says_why(office: ApprovalOffice, hers: Browser) -> None:
    secret, free = await office.key(), await office.key(UNRESTRICTED)
    made = (await office.hook(free)).json()["id"]
    approval = (await office.ask(secret, "POST", f"/v1/connectivity/webhook_endpoints/{made}/enable", Idempotency_Key="e")).json()
    assert (await office.ask(free, "DELETE", f"/v1/connectivity/webhook_endpoints/{made}")).status_code == 200
    seen = await office.decide(hers, approval["approval"]["id"])
    row = await office.state(approval["approval"]["id"])
    assert row["state"] in ("void", "executed") and row["result"]["status"] == 404 and "No webhook endpoint" in seen.page.text


async def test_the_limit_of_endpoints_is_the_answer_that_the_asker_gets_too(office: ApprovalOffice, hers: Browser) -> None:
    secret, free = await office.key(), await office.key(UNRESTRICTED)
    approval = await waiting(office, secret, "last", "last")
    for number in range(16):
        assert (await office.hook(free, f"p{number}")).status_code == 201
    await office.decide(hers, approval)
    row = await office.state(approval)
    assert row["state"] == "executed" and row["result"]["status"] == 409
    said = await office.hook(secret, "last", Idempotency_Key="last")
    assert said.status_code == 409 and said.headers["idempotent-replayed"] == "true" and said.json()["error"] == row["result"]["error"]
    assert await office.hooks() == 16


async def test_the_audit_log_names_who_approved_what_and_who_made_the_call(office: ApprovalOffice, his: Browser) -> None:
    id, secret = await office.named_key()
    approval = await waiting(office, secret)
    await office.decide(his, approval)
    rows = (await office.ask(await office.key(UNRESTRICTED), "GET", "/v1/audit-log?limit=50")).json()["data"]
    decided = next(row for row in rows if row["operation"] == "decide_approval")
    made = next(row for row in rows if row["operation"] == "create_connectivity_webhook_endpoint" and row["status"] == 201)
    assert (decided["surface"], decided["principal"], decided["change"]) == (
        "web",
        office.bob,
        f"approved create_connectivity_webhook_endpoint of {id} ({approval})",
    )
    assert (made["surface"], made["principal"], made["key_id"]) == ("change", office.ada, id)
