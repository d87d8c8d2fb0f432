"""Operations that exist for the tests of the machine. What they did is counted in the database, so that replicas share the count."""

from typing import Annotated, Literal, NamedTuple

import anyio
import sqlalchemy as sa
from pydantic import Field
from typing_extensions import TypedDict

from operations.deps import Ctx
from registry.challenge import Challenge, describe_loss, name_losses
from registry.errors import Conflict, NotFound, OcsError, StoreUnavailable
from registry.operation import Auth, Input, Nothing, Once, Scope, operation
from registry.ports import Conclusion
from storage.engine.sql import Connection, Query
from storage.organisations import ChangeTable

CHANGE = ChangeTable.table
SHOP = "org_of_a_shop"
How = Literal["ok", "early", "late", "sure", "unknown", "crash", "down", "hang", "busy_close"]
Name = Annotated[str, Field(min_length=1, max_length=40, description="Name of the thing, 1-40 characters.")]


class Row(NamedTuple):
    name: str
    value: int


ALL = Query(Row, sa.select(CHANGE.c.name, CHANGE.c.value).order_by(CHANGE.c.name))
ADD = Query(
    Row,
    lambda dialect: (
        dialect.insert(CHANGE)
        .values(name=sa.bindparam("name"), value=1)
        .on_conflict_do_update(index_elements=["name"], set_={"value": CHANGE.c.value + 1})
        .returning(CHANGE.c.name, CHANGE.c.value)
    ),
)


class Made(TypedDict):
    """A thing and how many there are of it."""

    name: str
    count: int


class Named(Input):
    """Which thing."""

    name: Name


class Asked(Named):
    """Which thing, and what is to become of the call."""

    how: How = "ok"


class New(Named):
    """A new thing."""

    size: int = Field(1, ge=1, le=9, description="Size, 1-9.")
    tags: dict[str, str] = Field(default_factory=dict, description="Labels.")


def add(connection: Connection, *, name: str) -> Made:
    row = connection.first(ADD, name=f"thing:{name}")
    assert row is not None
    return {"name": name, "count": row.value}


def add_and_refuse(connection: Connection, *, name: str) -> Made:
    """A write that changes something before it finds out that it must not."""
    add(connection, name=name)
    raise Conflict(f"{name} is taken")


def busy(connection: Connection) -> None:
    """A write that meets a database in trouble."""
    del connection
    raise StoreUnavailable("the database is busy")


def busy_once(connection: Connection, *, tries: list[int]) -> None:
    """A write that meets a database in trouble the first time."""
    tries.append(1)
    if len(tries) == 1:
        busy(connection)


def counters(connection: Connection) -> dict[str, int]:
    return {row.name[6:]: row.value for row in connection.all(ALL) if row.name.startswith("thing:")}


class Gate:
    """Lets a test hold a provider's answer."""

    def __init__(self) -> None:
        self.entered, self.open = anyio.Event(), anyio.Event()


GATES: list[Gate] = []


async def provider(ctx: Ctx, params: Asked) -> Made:
    """A provider that is called once for each `sent`, and answers as asked."""
    if params.how == "early":
        raise Conflict("refused before anything was sent", code="too_early")
    if params.how == "down":
        raise StoreUnavailable("the database is busy")
    ctx.reached_upstream = True
    await ctx.deps.store.write(add, name=f"sent {params.name}")
    if params.how == "late":
        raise NotFound("the provider does not know it")
    if params.how in ("sure", "unknown"):
        raise OcsError("The provider failed", code="ocs_timeout", outcome_unknown=params.how == "unknown")
    if params.how == "crash":
        raise RuntimeError("canary-in-a-fault")
    if params.how == "hang":
        GATES[-1].entered.set()
        await GATES[-1].open.wait()
    if params.how == "busy_close":
        ctx.at_close(busy_once, tries=[])
    ctx.at_close(add, name=f"kept {params.name}")
    return {"name": params.name, "count": 1}


@operation("GET", "/v1/things/{name}")
async def read_thing(ctx: Ctx, params: Asked) -> Made:
    """Read a thing."""
    if params.how == "late":
        ctx.reached_upstream = True
    if params.how in ("early", "late"):
        raise NotFound("There is no such thing")
    if params.how == "down":
        raise StoreUnavailable("the database is busy")
    if params.how == "crash":
        raise RuntimeError("canary-in-a-fault")
    return {"name": params.name, "count": (await ctx.deps.store.read(counters)).get(params.name, 0)}


@operation("GET", "/v1/free", charged=False)
async def read_free(ctx: Ctx, params: Nothing) -> Made:
    """Read what costs nothing."""
    del ctx, params
    return {"name": "free", "count": 0}


@operation("POST", "/v1/things", scope=Scope.ANY, status=201)
async def make_thing(ctx: Ctx, params: New) -> Made:
    """Make a thing."""
    return await ctx.settle_result(add, name=params.name)


@operation("POST", "/v1/labels", scope=Scope.ANY, status=201)
async def label_thing(ctx: Ctx, params: New) -> Made:
    """Make a thing whose answer is known before it is written."""
    return await ctx.settle({"name": params.name, "count": 1}, add, name=params.name)


@operation("POST", "/v1/kept", scope=Scope.ANY, once=Once(required=True, forever=True), status=201)
async def keep_thing(ctx: Ctx, params: New) -> Made:
    """Make a thing whose key is kept for ever."""
    return await ctx.settle_result(add, name=params.name)


@operation("PUT", "/v1/things/{name}", scope=Scope.WRITE, moves=True)
async def move_thing(ctx: Ctx, params: Asked) -> Made:
    """Move a thing; a test may change its caller's rights meanwhile."""
    if params.how == "hang":
        GATES[-1].entered.set()
        await GATES[-1].open.wait()
    return await ctx.settle_result(add, name=params.name)


async def paying(ctx: Ctx, params: Asked) -> str:
    """Selling asks for more than its declaration says, whatever is sold."""
    ctx.need(Scope.WRITE, ctx.deps.site)
    return params.name


@operation("POST", "/v1/sales", scope=Scope.ANY, moves=True, access=paying)
async def sell_thing(ctx: Ctx, params: Asked, name: str) -> Made:
    """Sell a thing; a test may change its caller's rights meanwhile."""
    if params.how == "hang":
        GATES[-1].entered.set()
        await GATES[-1].open.wait()
    return await ctx.settle_result(add, name=name)


@operation("POST", "/v1/administrations", scope=Scope.ADMIN)
async def administer(ctx: Ctx, params: Named) -> Made:
    """Do what only an admin may."""
    return await ctx.settle_result(add, name=params.name)


@operation("POST", "/v1/forgotten", scope=Scope.ANY)
async def forget_to_settle(ctx: Ctx, params: Named) -> Made:
    """Change something in a transaction of its own, and commit nothing of the call's."""
    del ctx
    return {"name": params.name, "count": 1}


@operation("POST", "/v1/refused", scope=Scope.ANY)
async def refuse_in_write(ctx: Ctx, params: Named) -> Made:
    """Refuse inside the transaction."""
    return await ctx.settle_result(add_and_refuse, name=params.name)


@operation("POST", "/v1/faults", scope=Scope.ANY)
async def fail_before_write(ctx: Ctx, params: Asked) -> Made:
    """Fail, or meet a database in trouble."""
    if params.how == "crash":
        raise RuntimeError("canary-in-a-fault")
    return await ctx.settle({"name": params.name, "count": 1}, busy)


def add_and_crash(connection: Connection, *, name: str) -> Conclusion:
    """A write with a fault of ours in it."""
    add(connection, name=name)
    raise RuntimeError("canary-in-a-fault")


async def staged(ctx: Ctx, params: Named) -> None:
    del params
    ctx.stage()


@operation("POST", "/v1/concluded", scope=Scope.ANY, access=staged)
async def crash_at_conclude(ctx: Ctx, params: Named, granted: None) -> Made:
    """Send something, and fail in the write that keeps what came of it."""
    del granted
    await ctx.dispatch((502, {"error": "lost"}), add, name=f"sent {params.name}")
    await ctx.conclude(add_and_crash, name=params.name)
    return {"name": params.name, "count": 1}


async def own_thing(ctx: Ctx, params: Asked) -> str:
    """A thing is its caller's while it is counted as such; `late` asks the provider first."""
    if params.how == "late":
        ctx.reached_upstream = True
    if f"owner {params.name}" not in await ctx.deps.store.read(counters):
        raise NotFound("There is no such thing")
    return params.name.upper()


@operation("POST", "/v1/owned", scope=Scope.ANY, access=own_thing)
async def use_owned(ctx: Ctx, params: Asked, thing: str) -> Made:
    """Use a thing of one's own."""
    return await ctx.settle_result(add, name=thing)


@operation("POST", "/v1/orders", scope=Scope.WRITE, upstream=True, once=Once(required=True, forever=True), status=201)
async def order_thing(ctx: Ctx, params: Asked) -> Made:
    """Order a thing from the provider."""
    return await provider(ctx, params)


@operation("GET", "/v1/upstream/{name}", upstream=True)
async def ask_upstream(ctx: Ctx, params: Named) -> Made:
    """Ask the provider."""
    ctx.reached_upstream = True
    return {"name": params.name, "count": 0}


@operation("DELETE", "/v1/things/{name}", scope=Scope.WRITE, confirm=True)
async def remove_thing(ctx: Ctx, params: Named) -> Made:
    """Remove a thing for good."""
    return await ctx.settle_result(add, name=params.name)


async def weigh_thing(ctx: Ctx, params: Asked) -> int:
    """What access grants: the handler and the challenge are given it."""
    del ctx
    return len(params.name)


async def name_weight(ctx: Ctx, params: Asked, weight: int) -> Challenge:
    """Asks the provider what would be lost; it answers as asked."""
    await provider(ctx, params)
    loss = describe_loss("thing", params.name, weight=f"{weight} g", colour=None)
    return Challenge(f"This will melt {name_losses((loss,))}.", (loss,))


@operation("PUT", "/v1/orders/{name}/melt", scope=Scope.WRITE, confirm=True, access=weigh_thing, challenge=name_weight)
async def melt_thing(ctx: Ctx, params: Asked, weight: int) -> Made:
    """Melt a thing."""
    del weight
    return await ctx.settle_result(add, name=params.name)


@operation("DELETE", "/v1/orders/{name}", scope=Scope.WRITE, confirm=True, upstream=True)
async def release_thing(ctx: Ctx, params: Asked) -> Made:
    """Release an ordered thing."""
    return await provider(ctx, params)


@operation("POST", "/v1/sessions", auth=Auth.SESSION, scope=Scope.ANY)
async def begin_session_only(ctx: Ctx, params: Named) -> Made:
    """Do what a person must do signed in."""
    return await ctx.settle_result(add, name=params.name)


@operation("POST", "/v1/persons", scope=Scope.ANY, organisation=False)
async def act_as_person(ctx: Ctx, params: Named) -> Made:
    """Act without an organisation."""
    return await ctx.settle_result(add, name=params.name)


@operation("POST", "/v1/internal", auth=Auth.INTERNAL, scope=Scope.NONE)
async def report_internally(ctx: Ctx, params: Named) -> Made:
    """Take what the bridge reports."""
    return await ctx.settle_result(add, name=params.name)


@operation("GET", "/api/orders", auth=Auth.STOREFRONT, scope=Scope.NONE)
async def list_shop_orders(ctx: Ctx, params: Nothing) -> Made:
    """List orders of the shop."""
    del params
    return {"name": ctx.caller.kind, "count": 0}


@operation("GET", "/api/orders/{name}", auth=Auth.STOREFRONT_OPEN, scope=Scope.NONE)
async def read_shop_order(ctx: Ctx, params: Named) -> Made:
    """Read an order of the shop."""
    return {"name": f"{ctx.caller.kind} {params.name}", "count": 0}


@operation("GET", "/api/open", auth=Auth.PUBLIC, scope=Scope.NONE)
async def read_publicly(ctx: Ctx, params: Nothing) -> Made:
    """Read what everybody may read."""
    del params
    return {"name": ctx.caller.kind, "count": 0}


async def thing_of_a_shop(ctx: Ctx, params: Asked) -> str:
    """A thing that whoever knows its name may see; it is a shop's, and so is the call."""
    if f"owner {params.name}" not in await ctx.deps.store.read(counters):
        raise NotFound("There is no such thing")
    ctx.act_for(SHOP)
    return params.name


@operation("GET", "/api/guesses/{name}", auth=Auth.STOREFRONT_OPEN, scope=Scope.NONE, enumeration_guarded=True, access=thing_of_a_shop)
async def read_guessed(ctx: Ctx, params: Asked, thing: str) -> Made:
    """Read a thing whose name is the secret."""
    del params
    return {"name": f"{ctx.organisation} {thing}", "count": 0}


@operation("POST", "/api/guesses/{name}", auth=Auth.STOREFRONT_OPEN, scope=Scope.NONE, enumeration_guarded=True, access=thing_of_a_shop)
async def change_guessed(ctx: Ctx, params: Asked, thing: str) -> Made:
    """Change a thing whose name is the secret, unless it is too early."""
    if params.how == "early":
        raise Conflict("refused before anything was written", code="too_early")
    return await ctx.settle_result(add, name=thing)


@operation("GET", "/api/unknown", auth=Auth.PUBLIC, scope=Scope.NONE)
async def find_nothing(ctx: Ctx, params: Nothing) -> Made:
    """Look for what is never there, and what nobody guesses."""
    del ctx, params
    raise NotFound("There is no such thing")
