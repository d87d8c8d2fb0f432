"""The SDK's handlers behind our own reading of requests: they get parameters that can be read in one way only."""

import orjson
from mcp.server.auth.provider import AccessToken, AuthorizationCode, AuthorizationParams, OAuthAuthorizationServerProvider, RefreshToken
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from starlette.requests import Request
from starlette.responses import Response

from transports.oauth.messages import FORM_MEDIA_TYPE, OauthParameters, encode_parameters

SdkProvider = OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]


class UnusedProvider(SdkProvider):
    """What a handler never asks of the provider that was made for it."""

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        raise RuntimeError(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        raise RuntimeError

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        raise RuntimeError

    async def load_authorization_code(self, client: OAuthClientInformationFull, authorization_code: str) -> AuthorizationCode | None:
        raise RuntimeError

    async def exchange_authorization_code(self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode) -> OAuthToken:
        raise RuntimeError

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        raise RuntimeError

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        raise RuntimeError

    async def load_access_token(self, token: str) -> AccessToken | None:
        raise RuntimeError

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        raise RuntimeError


def query_request(parameters: OauthParameters) -> Request:
    """A request with these parameters in its query."""
    return Request({"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": encode_parameters(parameters)})


def body_request(body: bytes, media_type: str, authorization: str = "") -> Request:
    """A request with this body."""
    sent = False

    async def receive() -> dict[str, object]:
        nonlocal sent
        message: dict[str, object] = {"type": "http.disconnect"} if sent else {"type": "http.request", "body": body, "more_body": False}
        sent = True
        return message

    headers = [(b"content-type", media_type.encode()), (b"content-length", b"%d" % len(body))]
    if authorization:
        headers.append((b"authorization", authorization.encode("latin-1")))
    return Request({"type": "http", "method": "POST", "path": "/", "headers": headers, "query_string": b""}, receive)


def form_request(parameters: OauthParameters, authorization: str = "") -> Request:
    """A request with this form."""
    return body_request(encode_parameters(parameters), FORM_MEDIA_TYPE, authorization)


def response_object(response: Response) -> dict[str, object]:
    """The JSON object of an answer."""
    return orjson.loads(bytes(response.body))
