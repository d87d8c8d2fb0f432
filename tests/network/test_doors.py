"""The big answers at the doors that hand on no pieces."""

from typing import Any

import orjson

from registry.answer import answer_call, gather_reply
from registry.call import Call, Reply
from tests.network.stage import NETWORK_OPERATIONS, NetworkStage


async def call(stage: NetworkStage, name: str, secret: str, **arguments: Any) -> Reply:
    made = Call(NETWORK_OPERATIONS.operations[name], "cli", "req_1", credential=secret, arguments=arguments)
    return await gather_reply(await answer_call(stage.world.pipeline, made, lambda *_: None), "req_1")


async def test_a_whole_tariff_is_gathered_for_the_command_line(stage: NetworkStage) -> None:
    secret = stage.http.headers["authorization"].removeprefix("Bearer ")
    for name, arguments in (("get_tariff", {"resellerId": 7001}), ("list_detailed_location_zones", {})):
        whole = await call(stage, name, secret, verbose=True, **arguments)
        page = await call(stage, name, secret, verbose=True, limit=1000, **arguments)
        assert whole.status == 200
        assert orjson.loads(whole.body) == orjson.loads(page.body)


def test_tools_ask_for_pages_so_that_big_answers_stay_out_of_a_model_s_context() -> None:
    paged = {
        name: operation.tool_defaults.get("limit") for name, operation in NETWORK_OPERATIONS.operations.items() if operation.tool_defaults
    }
    assert paged.pop("list_detailed_location_zones") == 1
    assert set(paged.values()) == {20}
