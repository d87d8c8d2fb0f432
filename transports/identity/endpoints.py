"""The endpoints that the SDK's handlers serve. This is where the SDK is imported, which takes a second: in a thread, when first asked."""

import orjson
from starlette.responses import Response

from clients.identity.client_metadata import ClientDocuments
from clients.identity.tokens import Verifier
from operations.deps import Deps
from transports.http.asgi import HttpScope, Receive
from transports.identity.answer import Answer, json_answer
from transports.identity.authorize import authorize
from transports.identity.metadata import AUTHORIZE, REGISTER, TOKEN
from transports.identity.parameters import FORM, header, read_body, read_parameters
from transports.identity.registration import register
from transports.identity.revocation import revoke
from transports.identity.tokens import exchange


class Endpoints:
    """Answers by path."""

    def __init__(self, deps: Deps, documents: ClientDocuments, verifier: Verifier) -> None:
        self._deps, self._documents, self._verifier = deps, documents, verifier

    async def answer(self, scope: HttpScope, receive: Receive) -> Answer:
        """One request of the right method."""
        if scope["path"] == AUTHORIZE:
            location = await authorize(self._deps, self._documents, read_parameters(scope["query_string"]))
            return Answer(302, b"", [(b"location", location.encode("ascii"))])
        if scope["path"] == REGISTER:
            client = scope.get("client")
            done = await register(self._deps, await read_body(scope, receive, "application/json"), client[0] if client else "")
            return json_answer(done.status, done.body)
        parameters = read_parameters(await read_body(scope, receive, FORM))
        authorization = header(scope["headers"], b"authorization")
        if scope["path"] == TOKEN:
            return told_on(await exchange(self._deps, parameters, authorization))
        return told_on(await revoke(self._deps, self._verifier, parameters, authorization))


def told_on(response: Response) -> Answer:
    """A handler's answer with our headers."""
    body = bytes(response.body)
    return json_answer(response.status_code, orjson.loads(body)) if body else Answer(response.status_code, b"", [])
