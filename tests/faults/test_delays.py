"""Time limits where they are real: the network is silent for longer than anybody waits."""

from pathlib import Path

import anyio
import httpx
import pytest

from tests.faults.rows import ROWS
from tests.faults.stage import open_faults_stage
from tests.faults.test_reads import UNKNOWN, shown

PATIENCE = 0.4
NAMED = {row.name: row for row in ROWS}
READING = ("list_sponsors", "get_tariff verbose=True", "esim_status_per_account", "get_subscriber_location")
CHANGING = ("assign_package", "send_sms", "create_location_zone", "modify_template_core", "delete_subscriber_package")


async def silent(seconds: float) -> None:
    await anyio.sleep_forever()


@pytest.mark.long
@pytest.mark.parametrize("names", [READING, CHANGING], ids=["reads", "writes"])
async def test_a_silent_network_costs_no_more_than_the_time_limit_and_a_write_is_sent_once(tmp_path: Path, names: tuple[str, ...]) -> None:
    async with open_faults_stage(tmp_path, wait=silent, seconds=PATIENCE) as stage:
        ready = {name: await stage.ready(NAMED[name], name.replace(" ", "-")) for name in names}
        answers: dict[str, httpx.Response] = {}

        async def call(name: str) -> None:
            answers[name] = await ready[name].send()

        seen = len(stage.world.sandbox.calls)
        for name in names:
            stage.trouble(NAMED[name].uses[-1], delay=600.0, times=None)
        began = anyio.current_time()
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(call, name)
        assert PATIENCE <= anyio.current_time() - began < 75 * PATIENCE
        assert {name: shown(answer) for name, answer in answers.items()} == dict.fromkeys(names, (502, "ocs_timeout", 18))
        told = {name for name, answer in answers.items() if answer.json()["error"].endswith(UNKNOWN)}
        assert told == (set(names) if names is CHANGING else set())
        assert await stage.claims() == dict.fromkeys(told, "unknown")
        again = {name: (await ready[name].send()).content for name in told}
        assert again == {name: answers[name].content for name in told}
        methods = [call.method for call in stage.world.sandbox.calls[seen:]]
        assert [methods.count(NAMED[name].uses[-1]) for name in names] == [1] * len(names)
