"""The endpoints for programs. The SDK's models are imported with this module, which takes a second: in a thread, when first asked."""

from clients.identity.client_metadata import ClientDocuments
from clients.identity.session_tokens import TokenVerifier
from operations.deps import Deps
from transports.http.asgi import HttpScope, Receive
from transports.oauth.authorize import authorize_program
from transports.oauth.messages import OAUTH_FORM, OAUTH_JSON, OauthAnswer, header_text, json_answer, read_oauth_body, read_parameters
from transports.oauth.metadata import AUTHORIZE_PATH, REGISTER_PATH, TOKEN_PATH
from transports.oauth.registration import register_program
from transports.oauth.tokens import exchange_token, revoke_oauth_token


class OauthEndpoints:
    """Answers by path."""

    def __init__(self, deps: Deps, documents: ClientDocuments, verifier: TokenVerifier) -> None:
        self._deps, self._documents, self._verifier = deps, documents, verifier

    async def answer(self, scope: HttpScope, receive: Receive) -> OauthAnswer:
        """One request of the right method."""
        if scope["path"] == AUTHORIZE_PATH:
            location = await authorize_program(self._deps, self._documents, read_parameters(scope["query_string"]))
            return OauthAnswer(302, b"", [(b"location", location.encode("ascii"))])
        if scope["path"] == REGISTER_PATH:
            client = scope.get("client")
            body = await read_oauth_body(OAUTH_JSON, scope, receive)
            return json_answer(201, await register_program(self._deps, body, client[0] if client else ""))
        parameters = read_parameters(await read_oauth_body(OAUTH_FORM, scope, receive))
        authorization = header_text(scope["headers"], b"authorization")
        if scope["path"] == TOKEN_PATH:
            tokens = await exchange_token(self._deps, parameters, authorization)
            return json_answer(200, tokens.model_dump(mode="json", exclude_none=True))
        await revoke_oauth_token(self._deps, self._verifier, parameters, authorization)
        return OauthAnswer(200, b"", [])
