"""What happens in the turns of a simulated processor.

It imports all that a processor is made of: a service that only might be asked for payments imports it with the first call.
"""

from functools import cache
from typing import Protocol

from pydantic import TypeAdapter

from simulators.processor.api import ProcessorApi
from simulators.processor.clock import catch_up_processor
from simulators.processor.control import ControlledProcessor, control_answer, control_processor
from simulators.processor.pages import PagesProcessor, ProcessorPages
from simulators.processor.state import ProcessorState, enter_turn, make_processor_state, open_resident_account
from simulators.server import WireAnswer, WireRequest


@cache
def _state_adapter() -> TypeAdapter[ProcessorState]:
    return TypeAdapter(ProcessorState)


class TurnsProcessor(PagesProcessor, ControlledProcessor, Protocol):
    """The processor, as its turns know it; `resident` is the id of the account that it always has, or empty."""

    key: str
    seed: int
    resident: str
    client_id: str

    @property
    def live(self) -> bool:
        """Whether it says that its money is real."""
        ...

    def wall(self) -> float:
        """The time outside, in Unix seconds."""
        ...


class ProcessorTurns:
    """The parts of a processor that read and change its state."""

    def __init__(self, processor: TurnsProcessor) -> None:
        self._processor = processor
        self.api = ProcessorApi(key=processor.key)
        self.pages = ProcessorPages(processor)

    @property
    def state_adapter(self) -> TypeAdapter[ProcessorState]:
        """How a state is written. Making it takes a tenth of a second: once a process, and never where no file is kept."""
        return _state_adapter()

    def first_state(self) -> ProcessorState:
        """The state of a processor that nobody has asked yet."""
        processor = self._processor
        return make_processor_state(now=processor.wall(), pages_url=processor.pages_url, live=processor.live, seed=processor.seed)

    def begin(self, state: ProcessorState) -> None:
        """Begins a turn: does what has come due, and makes the resident account where it is missing."""
        processor = self._processor
        enter_turn(state, now=processor.wall(), pages_url=processor.pages_url, live=processor.live)
        state.client_id = processor.client_id
        if processor.resident and processor.resident not in state.accounts:
            open_resident_account(state, processor.resident)
        catch_up_processor(state)

    async def control(self, method: str, path: str, body: object) -> object:
        """Answer the control API: `path` is below /control. Raises ProcessorRefusal."""
        return await control_processor(self._processor, method, path, body)

    async def control_answer(self, request: WireRequest) -> WireAnswer:
        """Answer `request` to the control API over HTTP, a refusal as well."""
        return await control_answer(self._processor, request)
