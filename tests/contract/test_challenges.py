"""What a confirmation or an approval is asked with: it names what is lost, writes nothing, costs nothing and tells no secret."""

from dataclasses import replace

import orjson
import pytest

from registry.call import Call
from registry.catalogue import AnyOperation
from registry.challenge import LOSSES_LIMIT
from registry.errors import ConfirmTokenRequired
from registry.redaction import SECRET_PATTERNS
from tests.contract.fleet import writes
from tests.contract.stage import OPERATIONS, ServiceHouse
from tests.draw import drawn

CHALLENGES = [pytest.param(o, id=o.id) for o in OPERATIONS if o.challenge is not None]
REVERSIBLE = {"modify_subscriber_status", "apply_changes"}
"""What takes nothing away for good: a set of changes of status, as in the example, is undone."""
"""The documented call of these takes nothing away."""


def test_every_operation_that_always_asks_names_what_is_lost() -> None:
    assert [o.id for o in OPERATIONS if o.confirm and o.challenge is None] == []


@pytest.mark.parametrize("operation", drawn(CHALLENGES, __file__))
async def test_a_challenge_names_its_losses_and_neither_writes_nor_costs(house: ServiceHouse, operation: AnyOperation) -> None:
    stage = await house.stage(operation)
    given = stage.fitted(operation, operation.examples[0].input)
    # What only an approval asks for is asked here as a confirmation, which is the same question.
    credential = house.credential(operation, stage)
    call = Call(replace(operation, confirm=True), "http", house.world.ids.new("req_"), credential=credential, arguments=given)
    with pytest.raises(ConfirmTokenRequired) as asked:
        await house.world.pipeline.run(call)
    challenge = asked.value
    assert challenge.message.startswith("This will ") and "cannot be read now" not in challenge.message
    assert operation.id in REVERSIBLE or 1 <= len(challenge.losses) <= LOSSES_LIMIT
    assert all(loss["name"] in challenge.message for loss in challenge.losses)
    text = orjson.dumps({**challenge.body(""), "confirm_token": "", "hint": ""}).decode()
    assert [pattern.pattern for pattern, _ in SECRET_PATTERNS if pattern.search(text)] == []
    assert (writes(stage.asked()), await house.charged(stage.who.organisation)) == ([], 0)
