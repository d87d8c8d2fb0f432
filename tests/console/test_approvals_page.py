"""The page of approvals: what a program asks for waits there, and a person decides it."""

from collections.abc import AsyncGenerator

import httpx
import pytest

from tests.approvals.office import ADA_OF_FJORD, ApprovalOffice, open_approval_office
from tests.console.conftest import DemoConsole
from tests.pages.browser import Browser, Seen
from tests.stage import opened

office = opened(open_approval_office)
PAGE = "/console/approvals"


@pytest.fixture
async def ada(office: ApprovalOffice) -> AsyncGenerator[Browser]:
    """Ada at the console, just signed in."""
    async with office.browser() as browser:
        await office.site.sign_in(browser, ADA_OF_FJORD, PAGE)
        yield browser


async def waiting(office: ApprovalOffice, secret: str, key: str = "one") -> str:
    return str((await office.hook(secret, Idempotency_Key=key)).json()["approval"]["id"])


async def decide(browser: Browser, approval: str, button: str = "Approve", **fields: str) -> Seen:
    form = (await browser.get(f"{PAGE}?approval={approval}")).page.form(PAGE, id=approval)
    form.fields |= fields
    return await browser.send(form, next(each[0] for each in form.buttons if each[0].startswith(button)))


@pytest.mark.long
async def test_what_a_key_asked_for_is_approved_on_the_page_and_done_once(demo: Browser, demo_server: DemoConsole) -> None:
    held = {"name": "support agent", "restrictions": {"approval": "every_write"}}
    secret = demo_server.api.post("/v1/api-keys", json=held).json()["secret"]
    asked = {"url": "https://hooks.example.com/agent"}
    headers = {"Authorization": f"Bearer {secret}", "Idempotency-Key": "ask-1"}
    with httpx.Client(base_url=demo_server.server.base_url, headers=headers) as agent:
        waits = agent.post("/v1/connectivity/webhook_endpoints", json=asked)
        assert waits.status_code == 202
        approval = waits.json()["approval"]["id"]
        seen = await demo.get(f"{PAGE}?approval={approval}")
        assert "This is the one that your link names." in seen.page.text and "support agent" in seen.page.text
        assert "This will create a webhook endpoint" in seen.page.text
        done = await decide(demo, approval)
        assert done.path == f"{PAGE}?approval={approval}" and "Approved and carried out" in done.page.text
        assert agent.post("/v1/connectivity/webhook_endpoints", json=asked).status_code == 201
    urls = [row["url"] for row in demo_server.api.get("/v1/connectivity/webhook_endpoints").json()["data"]]
    assert urls.count(asked["url"]) == 1


@pytest.mark.long
async def test_what_is_declined_is_said_and_not_done(office: ApprovalOffice, ada: Browser) -> None:
    approval = await waiting(office, await office.key())
    seen = await decide(ada, approval, "Decline")
    assert "Declined" in seen.page.text and (await office.state(approval))["state"] == "declined"
    assert await office.hooks() == 0


async def test_a_form_that_is_sent_again_says_that_it_was_decided(office: ApprovalOffice, ada: Browser) -> None:
    approval = await waiting(office, await office.key())
    form = (await ada.get(PAGE)).page.form(PAGE, id=approval)
    label = next(each[0] for each in form.buttons if each[0].startswith("Approve"))
    await ada.send(form, label)
    again = await ada.send(form, label)
    assert again.status == 409 and "was approved" in again.page.text and await office.hooks() == 1


async def test_what_was_shown_before_it_moved_is_not_approved(office: ApprovalOffice, ada: Browser) -> None:
    approval = await waiting(office, await office.key())
    seen = await decide(ada, approval, shown="0" * 64)
    assert seen.status == 409 and "has changed since it was shown" in seen.page.text
    assert (await office.state(approval))["state"] == "waiting"


@pytest.mark.long
async def test_an_old_sign_in_proves_itself_again_and_comes_back(office: ApprovalOffice, ada: Browser) -> None:
    approval = await waiting(office, await office.key())
    old = (await ada.get(PAGE)).page.form(PAGE, id=approval)
    office.site.clock.advance(15 * 60 + 1)
    stale = await ada.get(f"{PAGE}?approval={approval}")
    assert "Sign in again to decide" in stale.page.text
    assert not any("shown" in form.fields for form in stale.page.forms)
    late = await ada.send(old, next(each[0] for each in old.buttons if each[0].startswith("Approve")))
    assert late.path.startswith("/auth/sign-in") and (await office.state(approval))["state"] == "waiting"
    back = await office.site.sign_in(ada, ADA_OF_FJORD, f"{PAGE}?approval={approval}")
    assert back.path == f"{PAGE}?approval={approval}"
    assert "Approved and carried out" in (await decide(ada, approval)).page.text


async def test_a_link_to_a_request_of_somebody_else_says_so(ada: Browser) -> None:
    seen = await ada.get(f"{PAGE}?approval=apr_01k0a8w7zv6q4k3m2n1p0r9s8t")
    assert "The request that you were led to is not here" in seen.page.text and "Nothing waits" in seen.page.text
