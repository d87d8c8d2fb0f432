"""The audit log: who did what and how it ended, never with what."""

from inline_snapshot import snapshot

from registry.clock import DAY_SECONDS
from storage.audit import sweep_audit
from storage.engine.sweep import sweep_in_steps
from tests.registry import ledgers, things
from tests.registry.bench import Bench
from tests.world import NOON, Credentials


async def test_every_outcome_of_a_principal_has_one_row(bench: Bench) -> None:
    caller = await bench.connected()
    ask = bench.ask
    await ask(things.read_thing, caller, name="canary")
    await ask(things.make_thing, caller, key="canary-key", name="canary", surface="mcp")
    await ask(things.make_thing, caller, key="canary-key", name="canary")
    await ask(things.label_thing, caller, name="canary")
    await ask(things.make_thing, caller, name="canary", canary="canary")
    await ask(things.administer, caller, name="canary")
    await ask(things.remove_thing, caller, name="canary")
    await ask(things.remove_thing, caller, name="canary", token="canary")
    await ask(things.refuse_in_write, caller, name="canary")
    for how in ("ok", "early", "late", "sure", "unknown", "crash"):
        await ask(things.order_thing, caller, key=how, name="canary", how=how)
    await ask(things.read_thing, caller, name="canary", how="crash")
    rows = await bench.audited()
    assert all((row.principal, row.organisation, row.key_id) == (caller.person, caller.organisation, caller.key_id) for row in rows)
    assert all(row.at == NOON and row.milliseconds == 0 and row.request_id.startswith("req_") for row in rows)
    assert len({row.request_id for row in rows}) == len(rows) == 16
    assert "canary" not in repr(rows)
    assert sorted((row.operation, row.outcome, row.status, row.surface) for row in rows) == snapshot(
        [
            ("administer", "upgrade_required", 402, "http"),
            ("label_thing", "ok", 201, "http"),
            ("make_thing", "ok", 201, "mcp"),
            ("make_thing", "replayed", 201, "http"),
            ("make_thing", "unknown_field", 400, "http"),
            ("order_thing", "internal", 500, "http"),
            ("order_thing", "not_found", 404, "http"),
            ("order_thing", "ocs_timeout", 502, "http"),
            ("order_thing", "ocs_timeout", 502, "http"),
            ("order_thing", "ok", 201, "http"),
            ("order_thing", "too_early", 409, "http"),
            ("read_thing", "internal", 500, "http"),
            ("read_thing", "ok", 200, "http"),
            ("refuse_in_write", "conflict", 409, "http"),
            ("remove_thing", "confirm_token_invalid", 400, "http"),
            ("remove_thing", "confirm_token_required", 202, "http"),
        ]
    )


async def test_the_row_of_a_write_is_committed_with_it_and_others_are_buffered(bench: Bench, pro: Credentials) -> None:
    await bench.ask(things.read_thing, pro, name="x")
    await bench.ask(things.make_thing, pro, name="x")
    assert [row.operation for row in await bench.store.read(ledgers.audited)] == ["make_thing"]
    assert sorted(row.operation for row in await bench.audited()) == ["make_thing", "read_thing"]


async def test_a_401_is_not_recorded_and_neither_are_public_reads(bench: Bench, pro: Credentials) -> None:
    await bench.ask(things.make_thing, "nonsense", name="x")
    await bench.ask(things.begin_session_only, pro, name="x")
    await bench.ask(things.read_publicly)
    assert await bench.audited() == []


async def test_the_bridge_and_the_shop_are_recorded_as_such(bench: Bench) -> None:
    await bench.ask(things.report_internally, "internal-secret", name="x")
    await bench.ask(things.list_shop_orders, "storefront-secret")
    rows = await bench.audited()
    assert [(row.principal, row.organisation, row.outcome) for row in rows] == [("internal", "", "ok"), ("storefront", "", "ok")]


async def test_rows_are_kept_for_90_days(bench: Bench, pro: Credentials) -> None:
    assert 90 * DAY_SECONDS == 90 * DAY_SECONDS == bench.world.pipeline.rate_limiter.limits.audit_days * DAY_SECONDS
    await bench.ask(things.make_thing, pro, name="x")
    bench.clock.advance(90 * DAY_SECONDS)
    assert await sweep_in_steps(bench.store, sweep_audit, before=bench.clock.now() - 90 * DAY_SECONDS) == 0
    bench.clock.advance(1)
    assert await sweep_in_steps(bench.store, sweep_audit, before=bench.clock.now() - 90 * DAY_SECONDS) == 1
    assert await bench.audited() == []
