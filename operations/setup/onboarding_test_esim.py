"""Onboarding, step test_esim: a look at a line of the account."""

import re

import orjson

from clients.ocs.outcome import OcsNotFound
from clients.ocs.subscribers import Subscriber
from operations.deps import Ctx
from operations.ledger.esims import new_test_esim_profile
from operations.setup.onboarding import ONBOARDING_EXAMPLE, DemoReason, OnboardingState, TestEsim, then_onboarding
from operations.upstream.connection import AccountGone, Upstream, connect_upstream
from operations.upstream.lines import public_line_row
from registry.errors import OcsError, Refusal
from registry.operation import Example, Nothing, Scope, operation
from storage.onboarding import save_test_esim

_PREVIEW_ICCID = re.compile(r"89[0-9]{16,20}", re.ASCII)
_LONGEST_PREVIEW_TEXT = 64
# Choice: a token of one's own may see many accounts, and the first of them may be empty.
_MOST_PREVIEW_ACCOUNTS = 3
_PREVIEW_EXAMPLE: TestEsim = {
    "iccid": "8988303700000100286",
    "demo": False,
    "demo_reason": None,
    "status": "Active",
    "activated_at": "2026-10-02T08:14:00",
    "last_used_at": "2026-11-19T21:40:12",
}


class NoLineToPreview(Exception):
    """Control flow: there is no line that could be previewed."""

    def __init__(self, reason: DemoReason) -> None:
        super().__init__(reason)
        self.reason: DemoReason = reason


@operation(
    "POST",
    "/v1/onboarding/test-esim",
    reaches_out=True,
    scope=Scope.ANY,
    title="Preview test eSIM",
    examples=[Example("Is there a line to look at?", {}, {**ONBOARDING_EXAMPLE, "test_esim": _PREVIEW_EXAMPLE})],
)
async def onboarding_test_esim(ctx: Ctx, _params: Nothing) -> OnboardingState:
    """Onboarding step test_esim: preview the first line of your account.

    Issues nothing and never fails: where no line can be shown, `test_esim.demo` is true, its ICCID exists nowhere, and `demo_reason`
    says why. To get an eSIM that behaves as a real one, create a connectivity intent with a test plan.

    Reasons: `not_connected`, `not_configured` (the service has no reseller token), `account_absent` (it is gone upstream), `no_lines`,
    `unreadable` (the line has no ICCID), `ocs_timeout`, `ocs_unavailable`. PIN, PUK and activation codes are not shown.
    """
    try:
        shown = _line_preview(await _first_line(ctx))
    except NoLineToPreview as nothing:
        iccid = new_test_esim_profile(ctx.deps.ids).iccid
        shown = TestEsim(iccid=iccid, demo=True, demo_reason=nothing.reason, status=None, activated_at=None, last_used_at=None)
    text = orjson.dumps(shown).decode()
    return await ctx.settle_result(then_onboarding(save_test_esim), organisation=ctx.organisation, test_esim=text, now=ctx.now)


async def _first_line(ctx: Ctx) -> Subscriber:
    connection = ctx.caller.connection
    if connection is None:
        raise NoLineToPreview("not_connected")
    if connection.mode == "managed" and not ctx.deps.ocs_token.strip():
        raise NoLineToPreview("not_configured")
    try:
        found = await _first_listed_line(await connect_upstream(ctx))
    except (AccountGone, OcsNotFound):
        raise NoLineToPreview("account_absent") from None
    except OcsError as error:
        raise NoLineToPreview("ocs_timeout" if error.error_code == "ocs_timeout" else "ocs_unavailable") from None
    except Refusal:
        raise NoLineToPreview("ocs_unavailable") from None
    if found is None:
        raise NoLineToPreview("no_lines")
    return found


async def _first_listed_line(upstream: Upstream) -> Subscriber | None:
    """The first line of the caller's accounts; a row of another account is nobody's here."""
    accounts = [upstream.account_id] if upstream.managed else [account.get("id") for account in await upstream.accounts()]
    for account in accounts[:_MOST_PREVIEW_ACCOUNTS]:
        if account is None:
            continue
        lines = await upstream.ocs.subscriber.list_subscriber(account)
        for row in lines.get("subscriberList", []):
            if row.get("accountId", account) == account:
                return row
    return None


def _line_preview(row: Subscriber) -> TestEsim:
    """A line through the declared shape: what else the charging system says of it is dropped."""
    line = public_line_row(row)
    iccid = _preview_text(line.get("iccid"))
    if iccid is None or not _PREVIEW_ICCID.fullmatch(iccid):
        raise NoLineToPreview("unreadable")
    return {
        "iccid": iccid,
        "demo": False,
        "demo_reason": None,
        "status": _preview_text(line.get("currentStatus")),
        "activated_at": _preview_text(line.get("activationDate")),
        "last_used_at": _preview_text(line.get("lastUsageDate")),
    }


def _preview_text(value: object) -> str | None:
    return value if isinstance(value, str) and len(value) <= _LONGEST_PREVIEW_TEXT and value.isprintable() else None
