"""The account's page: organisations, invitations, programs."""

from registry.caller import Role
from registry.ports import SessionClaims
from storage.access_grants import AccessGrant, grants_of, insert_grant
from storage.organisations import memberships_of
from tests.membership_rows import leave
from tests.pages.browser import Browser
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site
from tests.pages.trail import TrailRow, trail


async def grant(site: Site, person: str, organisation: str | None, id: str = "gnt_1", name: str = "Chart maker") -> str:
    """A program that somebody lets act for them."""
    now = site.clock.now()
    kept = AccessGrant(id, person, organisation, "https://charts.example/client", name, "read write", "r", now, now + 1e6)
    await site.service.store.write(insert_grant, kept)
    return id


async def test_switching_is_for_members_and_is_recorded(site: Site, hers: Browser, ada: str) -> None:
    second = await site.organisation(ada, "Second")
    bobs = await site.organisation(await site.person("bob@fjord.example"), "Bobs secret")
    page = (await hers.get("/auth/account")).page
    assert "Bobs secret" not in page.html
    seen = await hers.send(page.form("/auth/account", "switch", id=second))
    assert "The people of Second" in (await hers.get("/auth/members")).page.text
    assert await trail(site, "switch_organization") == [TrailRow("switch_organization", second, ada, "web", "ok")]
    form = seen.page.form("/auth/account", "switch")
    for id in (bobs, "org_none", ""):
        form.fields["id"] = id
        seen = await hers.send(form)
        assert seen.status == 404
        assert "You are not a member of this organisation" in seen.page.text and "Bobs secret" not in seen.page.html
    assert len(await trail(site, "switch_organization")) == 1


async def test_who_left_an_organisation_acts_for_none_until_they_switch(site: Site, hers: Browser, ada: str) -> None:
    [first] = await site.service.store.read(memberships_of, person=ada)
    second = await site.organisation(ada, "Second")
    await site.service.store.write(leave, person=ada, organisation=first.organisation_id)
    page = (await hers.get("/auth/account")).page
    assert "You act for none of them at the moment" in page.text
    assert (await hers.get("/auth/members")).status == 409
    seen = await hers.send(page.form("/auth/account", "switch", id=second))
    assert "acting for" in seen.page.text


async def test_an_invitation_is_accepted_by_whom_it_was_sent_to_alone(site: Site, hers: Browser, ada: str) -> None:
    [home] = await site.service.store.read(memberships_of, person=ada)
    page = (await hers.get("/auth/members")).page
    await hers.send(page.form("/auth/members", "invite"), email="bob@fjord.example", role="admin")
    letter = (await site.letters())[-1]
    assert letter.to == "bob@fjord.example" and f"{site.base_url}/auth/invitations" in letter.text
    async with site.browser() as bobs, site.browser() as others:
        await site.person("eve@fjord.example")
        seen = await site.sign_in(others, "eve@fjord.example")
        assert "You are invited" not in seen.page.text
        seen = await site.sign_in(bobs, "bob@fjord.example", "/auth/invitations")
        assert seen.path.startswith("/auth/account")
        form = seen.page.form("/auth/account", "accept")
        forged = (await others.get("/auth/account")).page.forms[0].fields["csrf"]
        refused = await others.post("/auth/account", {"csrf": forged, "do": "accept", "id": form.fields["id"]})
        assert refused.status == 404 and "Fjord" not in refused.page.text
        seen = await bobs.send(form)
        assert "Fjord" in seen.page.text and "acting for" in seen.page.text
        again = await bobs.send(form)
        assert again.status == 404
    rows = await trail(site, "accept_invitation")
    assert [(row.operation, row.organisation) for row in rows] == [("accept_invitation", home.organisation_id)]
    [member] = await site.service.store.read(memberships_of, person=rows[0].principal)
    assert member.role == Role.ADMIN


async def test_a_program_is_shown_and_its_access_ended(site: Site, hers: Browser, ada: str) -> None:
    [home] = await site.service.store.read(memberships_of, person=ada)
    id = await grant(site, ada, home.organisation_id)
    page = (await hers.get("/auth/account")).page
    assert "Chart maker may read, write for Fjord" in page.text
    seen = await hers.send(page.form("/auth/account", "revoke", id=id))
    assert "Chart maker" not in seen.page.text
    assert await site.service.directory.by_session(SessionClaims(ada, None, id), site.clock.now()) is None
    assert await trail(site, "revoke_access") == [TrailRow("revoke_access", home.organisation_id, ada, "web", "ok")]


async def test_the_programs_of_others_are_neither_shown_nor_ended(site: Site, hers: Browser, ada: str) -> None:
    bob = await site.person("bob@fjord.example")
    id = await grant(site, bob, None, name="Bobs program")
    await grant(site, ada, None, "gnt_2")
    page = (await hers.get("/auth/account")).page
    assert "Bobs program" not in page.html and id not in page.html
    form = page.form("/auth/account", "revoke")
    form.fields["id"] = id
    assert (await hers.send(form)).status == 404
    assert len(await site.service.store.read(grants_of, person=bob, now=site.clock.now())) == 1
    assert await trail(site, "revoke_access") == []


async def test_what_is_done_without_an_operation_is_in_the_audit_log(site: Site, browser: Browser, ada: str) -> None:
    [home] = await site.service.store.read(memberships_of, person=ada)
    seen = await site.sign_in(browser, ADA_ADDRESS)
    await browser.send(seen.page.form("/auth/sign-out"))
    rows = await trail(site, "sign_in", "sign_out")
    assert rows == [TrailRow(name, home.organisation_id, ada, "web", "ok") for name in ("sign_in", "sign_out")]
