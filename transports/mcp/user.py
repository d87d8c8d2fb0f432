"""The authenticated caller as the SDK carries it; sealed request state is bound to this principal."""

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from starlette.requests import Request

from transports.mcp.visitor import Context, Visitor


class Member(AuthenticatedUser):
    """A visitor. The SDK's token is a principal only: the credential itself goes no further than the gate."""

    def __init__(self, visitor: Visitor) -> None:
        caller = visitor.caller
        super().__init__(AccessToken(token="", client_id=caller.organisation or "-", subject=caller.principal, scopes=[]))
        self.visitor = visitor


def visitor_of(ctx: Context) -> Visitor:
    """The visitor of an HTTP request; without one there is no call, and never a local principal instead."""
    request: object = ctx.request
    user: object = request.scope.get("user") if isinstance(request, Request) else None
    if not isinstance(user, Member):
        raise PermissionError("a request reached the MCP server around its gate")
    return user.visitor
