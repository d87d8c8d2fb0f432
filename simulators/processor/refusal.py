"""What the processor says when it does not do what was asked."""

from typing import TypeAlias

JsonObject: TypeAlias = dict[str, object]
ERROR_DOCS_URL = "https://stripe.com/docs/error-codes/"


class ProcessorRefusal(Exception):
    """An error answer. `early`: the call was never begun, so nothing is kept under its idempotency key."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        early: bool = False,
        more: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.message, self.status, self.type, self.code, self.param = message, status, type, code, param
        self.early, self.more = early, more or {}

    def body(self, request: str) -> JsonObject:
        """As it goes over the wire; what does not apply is left out."""
        error: JsonObject = {"message": self.message, "type": self.type, **self.more}
        if self.code is not None:
            error |= {"code": self.code, "doc_url": ERROR_DOCS_URL + self.code.replace("_", "-")}
        if self.param is not None:
            error["param"] = self.param
        error["request_log_url"] = f"https://dashboard.stripe.com/test/logs/{request}?t=0"
        return {"error": error}


class OAuthRefusal(Exception):
    """An error answer of the way in for accounts (RFC 6749)."""

    def __init__(self, error: str, description: str, status: int = 400) -> None:
        super().__init__(description)
        self.error, self.description, self.status = error, description, status

    def body(self) -> JsonObject:
        """As it goes over the wire."""
        return {"error": self.error, "error_description": self.description}


def missing_row(kind: str, id: str, *, param: str = "id", status: int = 404) -> ProcessorRefusal:
    """No such thing in this account."""
    return ProcessorRefusal(f"No such {kind}: '{id}'", status=status, code="resource_missing", param=param)


def account_refusal(account: str, key: str) -> ProcessorRefusal:
    """The key does not open that account."""
    shown = f"{key[:8]}{'*' * 12}{key[-4:]}"
    text = (
        f"The provided key '{shown}' does not have access to account '{account}' (or that account does not exist). "
        "Application access may have been revoked."
    )
    return ProcessorRefusal(text, status=403, code="account_invalid", early=True)
