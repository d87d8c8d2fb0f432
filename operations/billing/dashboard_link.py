"""The pages of an Express account at the payment processor."""

from typing_extensions import TypedDict

from operations.deps import Ctx
from operations.services.payments.connect import own_dashboard, require_account
from registry.errors import Conflict
from registry.limits import Role, Scope
from registry.model import Nothing
from registry.operation import Example, operation
from storage.money.connect import Connected


class DashboardLink(TypedDict):
    """`url` signs one person in, once, for a few minutes."""

    url: str


async def express_account(ctx: Ctx, params: Nothing) -> Connected:
    """The organisation's account, where the processor gives links to its pages."""
    del params
    ctx.answers_caller_alone()
    ctx.need_admin("A link to the pages where the bank account can be changed")
    account = await require_account(ctx)
    if account.kind != "express":
        raise own_dashboard()
    return account


@operation(
    "POST",
    "/v1/operator-billing/connect/dashboard-link",
    scope=Scope.WRITE,
    role=Role.ADMIN,
    processor=True,
    title="Get dashboard link",
    access=express_account,
    raises=[Conflict],
    examples=[Example("Where do we see our payouts?", {}, {"url": "https://connect.processor.example/express/acct_1R8fjord0Xy/k2Vt9"})],
)
async def operator_billing_connect_dashboard_link(ctx: Ctx, params: Nothing, account: Connected) -> DashboardLink:
    """Get a link that signs you in to your payment account's pages.

    Give it to nobody: whoever opens it first is in. It works once, for a few minutes.

    For admins, since the bank account that is paid can be changed there. Express accounts only; the owner of a Standard account signs in
    at the processor.
    """
    del params
    ctx.reached_upstream = True
    link = await ctx.deps.payments.dashboard_link(account.account)
    return {"url": link.url}
