"""One simulated payment processor: its API, its pages, its state and its webhooks."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import orjson

from simulators.processor.faults import ProcessorCall, ProcessorFaults
from simulators.processor.state_file import StateFile
from simulators.processor.webhooks import sign_webhook
from simulators.server import AsgiMessage, AsgiReceive, AsgiSend, PostBody, SimulatorApp, WireAnswer, WireRequest, asgi_handler

if TYPE_CHECKING:  # start-up budget: what it is made of is imported when it is first asked
    from simulators.processor.pages import ProcessorPages
    from simulators.processor.state import ProcessorState
    from simulators.processor.turns import ProcessorTurns

PROCESSOR_CALL_LOG_SIZE = 1_000
WEBHOOK_INTERVAL_SECONDS = 0.5


class SimulatedProcessor:
    """A processor with a platform account and connected accounts, in memory, or kept in a file."""

    def __init__(
        self,
        *,
        wall: Callable[[], float],
        pages_url: str,
        key: str,
        webhook_secret: str,
        webhook_url: str = "",
        client_id: str = "ca_simulated_processor",
        state_file: Path | None = None,
        seed: int = 1,
        resident: str = "",
        report: Callable[[str], None] = lambda text: None,
    ) -> None:
        """`pages_url`: where people reach its pages. `webhook_url`: where its events go. `wall` returns the time outside in Unix seconds.

        `client_id`: of the platform, for owners who give it access to an existing account. `report` is called for an unreadable file.

        `resident`: the id of an account that always exists, ready to be paid.
        Choice: the id is given, not drawn: a database may name it before this processor was asked anything, and processes without a file
        agree on it.
        """
        self.wall, self.pages_url, self.key, self.seed = wall, pages_url, key, seed
        self.resident = resident
        self.webhook_secret, self.webhook_url, self.client_id = webhook_secret, webhook_url, client_id
        self.faults = ProcessorFaults()
        self.calls: deque[ProcessorCall] = deque(maxlen=PROCESSOR_CALL_LOG_SIZE)
        self._state_file: StateFile[ProcessorState] = StateFile(
            lambda: self._turns.first_state(), state_file, report, lambda: self._turns.state_adapter
        )
        self._delivering = anyio.Lock()

    @property
    def live(self) -> bool:
        """Whether it says that its money is real, to try what happens then. It never is."""
        return "_live_" in self.key[:8]

    @property
    def begun(self) -> bool:
        """Whether there is a state, in this process or in the file of an earlier one."""
        return self._state_file.begun

    @property
    def state(self) -> ProcessorState:
        """As it is in this process; changes belong into a turn."""
        return self._state_file.state

    @cached_property
    def _turns(self) -> ProcessorTurns:
        from simulators.processor.turns import ProcessorTurns  # the module that imports all that a processor is made of

        return ProcessorTurns(self)

    @property
    def pages(self) -> ProcessorPages:
        return self._turns.pages

    @asynccontextmanager
    async def turn(self, *, writes: bool) -> AsyncGenerator[ProcessorState]:
        """The state at this moment, for nobody else at the same time. With `writes`, what is changed is stored before the block is left."""
        async with self._state_file.turn(writes=writes) as state:
            self._turns.begin(state)
            yield state

    async def handle(
        self, method: str, path: str, query: str = "", headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> WireAnswer:
        """One call of its API; header names are in lower case. Raises AnswerLost where a fault was ordered that gives no answer."""
        headers, path = headers or {}, path.removeprefix(urlsplit(self.pages_url).path)
        account = headers.get("stripe-account", "")
        fault = self.faults.take(method, path, account)
        answer, status = None, 0
        try:
            if fault is None or fault.has_effect:
                async with self.turn(writes=method != "GET") as state:
                    answer = self._turns.api.handle(state, method, path, query, headers, body)
            if fault is not None:
                answer = fault.answer()
            assert answer is not None  # without a fault the API has answered
            status = answer.status
        finally:
            trouble = "" if fault is None else fault.trouble
            self.calls.append(ProcessorCall(method, path, account, headers.get("idempotency-key", ""), status, trouble))
        return answer

    async def control(self, method: str, path: str, body: object = None) -> object:
        """What a test, or a person who tries things out, does beside the API: `path` is below /control. Raises ProcessorRefusal."""
        return await self._turns.control(method, path, body)

    async def control_answer(self, request: WireRequest) -> WireAnswer:
        """The answer to a request to the control API that came over HTTP."""
        return await self._turns.control_answer(request)

    async def deliver(self, send: PostBody) -> list[int]:
        """Post what is due, once each; what is not taken is posted again later. Returns the status of each post, 0 without an answer."""
        if not self.webhook_url:
            return []
        async with self._delivering:
            answers: list[tuple[str, int]] = []
            for event, body in await self._due():
                status = await send(self.webhook_url, body, sign_webhook(body, self.webhook_secret, self.wall()))
                answers.append((event, status))
            if answers:
                async with self.turn(writes=True) as state:
                    for event, status in answers:
                        state.hooks.note(event, status, state.at)
        return [status for _, status in answers]

    async def _due(self) -> list[tuple[str, bytes]]:
        """The events to be posted now, with their bodies. Without any it changes nothing."""
        async with self.turn(writes=False) as state:
            idle = not state.pending and not state.hooks.has_due(state.at)
        if idle:
            return []
        async with self.turn(writes=True) as state:
            for event in state.pending:
                state.hooks.add(event, state.at)
            state.pending.clear()
            due = state.hooks.due(state.at, self.seed)
            return [(event, orjson.dumps(state.events[event])) for event in due if event in state.events]


def make_processor_app(sandbox: SimulatedProcessor) -> SimulatorApp:
    """HTTP around a processor. Choice: its control API takes no key, for it listens where its user says: on this machine by default."""

    async def handle(request: WireRequest) -> WireAnswer:
        if request.path == "/control" or request.path.startswith("/control/"):
            return await sandbox.control_answer(request)
        return await sandbox.handle(*request[:5])

    async def deliver(post: PostBody) -> None:
        if sandbox.begun:
            await sandbox.deliver(post)

    api = asgi_handler(handle, b"{}")

    async def handler(scope: AsgiMessage, receive: AsgiReceive, send: AsgiSend) -> None:
        path = str(scope["path"])
        ours = path == "/control" or path.startswith(("/v1/", "/oauth/token", "/oauth/deauthorize", "/control/"))
        await (api if ours else sandbox.pages)(scope, receive, send)

    return SimulatorApp(handler, deliver, WEBHOOK_INTERVAL_SECONDS)
