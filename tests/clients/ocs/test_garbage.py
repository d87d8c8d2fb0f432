"""A refused call of the charging system leaves nothing to the collector."""

import pytest

from registry.errors import OcsError, Refusal
from tests.clients.ocs.upstream import Upstream, UpstreamAnswer, raw, reply
from tests.gc_probe import left_by


@pytest.mark.parametrize(("answer", "refusal"), [(reply(code=100), OcsError), (raw(b"{}"), Refusal)], ids=["refused", "unreadable"])
async def test_a_refused_call_leaves_nothing_to_the_collector(answer: UpstreamAnswer, refusal: type[Refusal]) -> None:
    ocs, told = Upstream([answer]).ocs(), list[str]()

    async def call() -> None:
        try:
            await ocs.subscriber.get_single_subscriber(7)
        except refusal as error:
            told.append(error.error_code)

    left = await left_by(call)
    assert len(told) == 21
    assert [each for each in left if isinstance(each, Refusal)] == []
