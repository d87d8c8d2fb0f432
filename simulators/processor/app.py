"""The simulated processor as an ASGI application, for a server of its own: API, pages and control API; events are sent while it runs."""

import orjson

from simulators.processor.call import ProcessorRefusal
from simulators.processor.simulated_processor import SimulatedProcessor
from simulators.server import AsgiMessage, AsgiReceive, AsgiSend, PostBody, SimulatorApp, WireAnswer, WireRequest, asgi_handler

WEBHOOK_INTERVAL_SECONDS = 0.5


def make_processor_app(sandbox: SimulatedProcessor) -> SimulatorApp:
    """HTTP around a processor. Choice: its control API takes no key, for it listens where its user says: on this machine by default."""

    async def handle(request: WireRequest) -> WireAnswer:
        if request.path == "/control" or request.path.startswith("/control/"):
            return await control_answer(sandbox, request)
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


async def control_answer(sandbox: SimulatedProcessor, request: WireRequest) -> WireAnswer:
    """The answer of the control API, with why not where it refuses."""
    try:
        order: object = orjson.loads(request.body) if request.body else None
        status, answer = 200, await sandbox.control(request.method, request.path.removeprefix("/control"), order)
    except orjson.JSONDecodeError:
        status, answer = 400, {"error": {"message": "the body is not JSON"}}
    except ProcessorRefusal as refusal:
        status, answer = refusal.status, {"error": {"message": refusal.message}}
    return WireAnswer(status, orjson.dumps(answer, option=orjson.OPT_INDENT_2))
