"""Operations that make money due, for the tests of the ledger. What really was made due is counted in the database, too."""

from typing import Literal

from operations.deps import Ctx
from registry.caller import Money
from registry.errors import Conflict, NotFound, OcsError
from registry.operation import Due, Input, Once, Scope, SpendKind, operation
from storage.engine.sql import Connection
from tests.registry.things import Made, add


class Purchase(Input):
    """What is bought, for how much, and what is to become of the call."""

    name: str = "x"
    amount: int = 0
    currency: str = "EUR"
    how: Literal["ok", "early", "refused", "sure", "unknown", "crash"] = "ok"


async def price_of_purchase(ctx: Ctx, params: Purchase) -> Due:
    del ctx
    return Due((Money(params.amount, params.currency),))


def count_money(connection: Connection, *, name: str, amount: int) -> Made:
    """Counts `amount` units by as many calls; amounts of these tests are small."""
    for _ in range(amount):
        add(connection, name="money")
    return add(connection, name=name)


def refuse_purchase(connection: Connection) -> Made:
    add(connection, name="money")
    raise Conflict("the thing is taken")


@operation("POST", "/v1/purchases", scope=Scope.ANY, status=201, spends=price_of_purchase)
async def buy_thing(ctx: Ctx, params: Purchase) -> Made:
    """Buy a thing in our own store."""
    if params.how == "refused":
        return await ctx.settle_result(refuse_purchase)
    return await ctx.settle_result(count_money, name=params.name, amount=params.amount)


@operation("DELETE", "/v1/purchases/{name}", scope=Scope.ANY, spends=price_of_purchase, confirm=True)
async def buy_with_confirmation(ctx: Ctx, params: Purchase) -> Made:
    """Buy a thing after a confirmation."""
    return await ctx.settle_result(count_money, name=params.name, amount=params.amount)


@operation("POST", "/v1/provided", scope=Scope.WRITE, upstream=True, once=Once(required=True), status=201, spends=price_of_purchase)
async def buy_from_provider(ctx: Ctx, params: Purchase) -> Made:
    """Buy a thing from the provider."""
    if params.how == "early":
        raise Conflict("refused before anything was sent", code="too_early")
    ctx.reached_upstream = True
    if params.how == "sure":
        raise OcsError("The provider was not reached", before_execution=True)
    if params.how == "refused":
        raise NotFound("The provider does not know it")
    await ctx.deps.store.write(count_money, name="sent", amount=params.amount)
    if params.how == "unknown":
        raise OcsError("The provider did not answer", code="ocs_timeout", outcome_unknown=True)
    if params.how == "crash":
        raise RuntimeError("a fault of ours")
    return {"name": params.name, "count": 1}


@operation("POST", "/v1/unsaid", scope=Scope.ANY, status=201)
async def leave_unsaid(ctx: Ctx, params: Purchase) -> Made:
    """Do something whose declaration does not say what it makes due."""
    return await ctx.settle_result(add, name=params.name)


@operation("POST", "/v1/opened", scope=Scope.ANY, status=201, spends=SpendKind.OPEN)
async def open_ways(ctx: Ctx, params: Purchase) -> Made:
    """Open a way for money to be made due later."""
    return await ctx.settle_result(add, name=params.name)


@operation("GET", "/v1/purchases/{name}")
async def look_at_purchase(ctx: Ctx, params: Purchase) -> Made:
    """Look at what was bought."""
    del ctx
    return {"name": params.name, "count": 0}
