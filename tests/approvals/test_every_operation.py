"""What is kept of a call is the call: its input, read again from what was stored, is the same input."""

import orjson

from operations.catalogue import CATALOGUE
from registry.binding import binding_of
from registry.catalogue import AnyOperation
from registry.policy import input_digest
from tests.contract.declared import of_every

CHANGES_NOTHING_YET = {"plan_changes", "undo_changes", "cancel_change_set"}
"""A plan changes no line, and a stop takes only from the asker: the application waits."""
WAITING = [each for each in CATALOGUE.operations.values() if each.approvable]


@of_every(WAITING)
def test_the_stored_input_of_every_operation_is_the_one_that_was_sent(operation: AnyOperation) -> None:
    binding = binding_of(operation)
    for example in operation.examples:
        sent = binding.validate(binding.arguments(example.input))
        stored = orjson.loads(orjson.dumps(sent.model_dump(mode="json", by_alias=True, exclude_unset=True)))
        again = binding.validate(binding.arguments(stored))
        assert again == sent and input_digest(again) == input_digest(sent)


def test_every_operation_that_writes_may_have_to_wait_but_the_decision_itself() -> None:
    spared = [each.id for each in CATALOGUE.operations.values() if not each.read_only and not each.approvable and each.organisation]
    assert {id for id in spared if CATALOGUE.operations[id].auth.value in ("bearer", "session")} == CHANGES_NOTHING_YET
    assert not CATALOGUE.operations["decide_approval"].approvable
