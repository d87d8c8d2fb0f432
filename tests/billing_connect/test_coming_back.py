"""Whoever comes back from the processor's pages and named no page of their own finds one of ours."""

from pathlib import Path

import pytest

from tests.pages.site import open_site

CODE, STATE = "ac_R8x2Lk9QvWm4", "rG3vJq0sYbX1mT9kD4wZ7uHc2eLfP6aNi8oVxQyRtKE"


@pytest.mark.long
async def test_the_page_on_payments_takes_whoever_comes_back_and_logs_no_code(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, site.browser() as browser:
        ada = await site.person("ada@fjord.example")
        await site.organisation(ada, "Fjord")
        await site.sign_in(browser, "ada@fjord.example")
        seen = await browser.get(f"/auth/payments?code={CODE}&state={STATE}")
        assert (seen.status, "Fjord" in seen.page.text) == (200, True)
        logged = b"".join(site.log)
        assert b'"path":"/auth"' in logged and CODE.encode() not in logged and STATE.encode() not in logged
