"""The office, and Ada before her browser."""

from collections.abc import AsyncGenerator

import pytest

from tests.approvals.office import ADA_OF_FJORD, APPROVALS_PATH, BOB_OF_FJORD, ApprovalOffice, open_approval_office
from tests.pages.browser import Browser
from tests.stage import opened

office = opened(open_approval_office)


@pytest.fixture
async def hers(office: ApprovalOffice) -> AsyncGenerator[Browser]:
    async with office.browser() as browser:
        assert (await office.site.sign_in(browser, ADA_OF_FJORD, APPROVALS_PATH)).status == 200
        yield browser


@pytest.fixture
async def his(office: ApprovalOffice) -> AsyncGenerator[Browser]:
    async with office.browser("203.0.113.8") as browser:
        assert (await office.site.sign_in(browser, BOB_OF_FJORD, APPROVALS_PATH)).status == 200
        yield browser
