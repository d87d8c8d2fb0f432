"""The processor in the same process: behind httpx, with trouble that was ordered."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest

from simulators.processor.faults import ProcessorFault
from simulators.processor.simulated_processor import SimulatedProcessor
from simulators.transport import SimulatorTransport
from tests.sandbox_payments.processor import BEGIN, PAGES_ADDRESS, SIMULATED_KEY


@asynccontextmanager
async def reached(sandbox: SimulatedProcessor) -> AsyncGenerator[httpx.AsyncClient]:
    headers = {"authorization": f"Bearer {SIMULATED_KEY}"}
    async with httpx.AsyncClient(transport=SimulatorTransport(sandbox), base_url="http://payments.invalid", headers=headers) as http:
        yield http


def sandbox() -> SimulatedProcessor:
    return SimulatedProcessor(wall=lambda: float(BEGIN), pages_url=PAGES_ADDRESS, key=SIMULATED_KEY, webhook_secret="whsec_x")


@pytest.mark.parametrize(("trouble", "error"), [("timeout", httpx.ReadTimeout), ("closed", httpx.ReadError)])
@pytest.mark.parametrize("after", [False, True])
async def test_an_answer_that_never_comes_leaves_an_effect_only_where_that_was_ordered(
    trouble: str, error: type[Exception], after: bool
) -> None:
    processor = sandbox()
    processor.faults.queue.append(ProcessorFault.model_validate({"trouble": trouble, "path": "/v1/customers", "after": after}))
    async with reached(processor) as http:
        with pytest.raises(error):
            await http.post("/v1/customers", data={"name": "A"}, headers={"idempotency-key": "k"})
        assert len(processor.state.book(processor.state.platform).customers) == int(after)
        again = await http.post("/v1/customers", data={"name": "A"}, headers={"idempotency-key": "k"})
    assert (again.status_code, again.headers.get("idempotent-replayed")) == (200, "true" if after else None)
    assert len(processor.state.book(processor.state.platform).customers) == 1


async def test_pages_and_the_api_share_one_state() -> None:
    processor = sandbox()
    async with reached(processor) as http:
        made = (await http.post("/v1/accounts", data={"type": "express", "metadata[org]": "org_1"})).json()
        async with processor.turn(writes=True) as state:
            assert state.accounts[made["id"]].metadata == {"org": "org_1"}
        assert (await http.get(f"/v1/accounts/{made['id']}")).json() == made
