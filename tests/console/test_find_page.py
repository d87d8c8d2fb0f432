"""The search of every page: where what somebody has a piece of is, and that nobody reads later what was looked for."""

from urllib.parse import urlencode

import pytest

from tests.console.conftest import DemoConsole
from tests.pages.browser import Browser
from tests.pages.conftest import ADA_ADDRESS
from tests.pages.site import Site
from tests.pages.trail import trail
from tests.registry.ledgers import audited


async def look_for(browser: Browser, text: str, start: str = "/console") -> str:
    """The page that the search in the header of `start` leads to."""
    form = (await browser.get(start)).page.form("/console/find")
    return (await browser.get(f"{form.action}?{urlencode({**form.fields, 'q': text})}")).path


@pytest.mark.long
async def test_the_only_record_with_a_number_is_shown_at_once_and_several_are_listed_by_kind(
    demo: Browser, demo_server: DemoConsole
) -> None:
    first, second = (row["iccid"] for row in demo_server.api.get("/v1/fleet/lines", params={"limit": 2}).json()["data"])
    assert await look_for(demo, first) == f"/console/lines/{first}"
    assert await look_for(demo, f" {second} ", f"/console/lines/{first}") == f"/console/lines/{second}"
    intent = demo_server.api.post("/v1/connectivity/intents", json={"plan": "test_eu_1gb"}, headers={"Idempotency-Key": "find-1"}).json()[
        "id"
    ]
    (address,) = (await demo.get(f"/console/find?q={intent.upper()}")).way
    assert address == f"{demo_server.server.base_url}/console/issue/intents/{intent}"
    seen = await demo.get(f"/console/find?q={first[:6]}")
    assert (seen.status, "20 records have" in seen.page.text, "There is more than this" in seen.page.text) == (200, True, True)
    assert f'href="/console/lines/{first}"' in seen.page.html and "Lines" in seen.page.text
    assert seen.page.form("/console/find").fields["q"] == first[:6]
    demo.http.headers["Accept-Language"] = "de"
    assert "20 Einträge enthalten" in (await demo.get(f"/console/find?q={first[:6]}")).page.text


async def test_people_lead_to_the_organisation_and_those_of_others_are_not_found(hers: Browser, site: Site, fjord: str) -> None:
    seen = await hers.get("/console/find?q=Berg")
    assert (seen.path, seen.way) == ("/console/organisation", [f"{site.base_url}/console/organisation#people"])
    await site.organisation(await site.person("berg@fjord.example", name="Bo Berg"), "Other")
    assert (await hers.get("/console/find?q=berg")).path == "/console/organisation"  # those of others are not found
    await site.join(await site.person("eva@fjord.example", name="Eva Bergman"), fjord)
    both = await hers.get("/console/find?q=berg")
    assert both.path == "/console/find?q=berg" and "Ada Berg Admin" in both.page.text and "Eva Bergman Member" in both.page.text


async def test_what_is_not_found_says_what_can_be_looked_for_and_nothing_of_it_is_kept(hers: Browser, site: Site) -> None:
    seen = await hers.get("/console/find?q=zzqx-secret")
    assert seen.status == 200 and "Nothing was found for “zzqx-secret”." in seen.page.text
    assert "4 or more digits in a row" in seen.page.text
    assert 'href="/console/fleet?text=zzqx-secret"' in seen.page.html
    short = await hers.get("/console/find?q=z")
    assert short.status == 400 and "What can be looked for" in short.page.text
    assert "Type a piece" in (await hers.get("/console/find")).page.text
    assert [row.outcome for row in await trail(site, "console.find")] == ["ok", "refused", "ok"]
    assert await trail(site, "find_record") == []
    await site.service.flush()
    rows = await site.service.store.read(lambda connection: str(audited(connection)))
    assert "zzqx" not in rows and b"zzqx" not in b"".join(site.log)
    assert ADA_ADDRESS not in rows
