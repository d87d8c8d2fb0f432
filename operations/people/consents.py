"""A person's answer to a program that asks to act for them."""

import base64
import json
from collections.abc import Sequence
from typing import NamedTuple, cast
from urllib.parse import urlencode, urlsplit

from typing_extensions import TypedDict

from operations.deps import Deps
from operations.people.session_tokens import token_issuer, with_included_scopes
from operations.secret_tokens import new_secret_token, secret_digest
from registry.clock import DAY_SECONDS
from registry.errors import BadRequest, NotFound
from registry.ids import Ids
from registry.ports import AuditRecord
from storage.access_grants import GRANT_PREFIX, AccessGrant
from storage.oauth_clients import end_authorization_request, find_authorization_request, insert_authorization_request
from storage.oauth_tokens import ANSWERED, NewCode, keep_consent
from storage.sealing import SERVICE_OWNER, Keyring

AUTHORIZATION_REQUEST_SECONDS = 1800.0
"""Somebody may have to sign up first, which takes a mail or two."""
AUTHORIZATION_CODE_SECONDS = 60.0
GRANT_SECONDS = 180.0 * DAY_SECONDS
_AUTHORIZATION_REQUEST_FIELD = "authorization_request"


class CodeBinding(TypedDict):
    """What a code is bound to. `explicit`: the request named the redirect URI, so that the exchange of the code must, too."""

    redirect_uri: str
    explicit: bool
    challenge: str
    renewable: bool


class AuthorizationRequest(CodeBinding):
    """A program's request, checked: what the person is shown, and what its code will be bound to."""

    client_id: str
    client_name: str
    client_uri: str | None
    scopes: list[str]
    resource: str
    state: str | None
    vouched: bool


class ConsentQuestion(NamedTuple):
    """What a person is asked. `vouched`: the program is named by an https address that it published itself under."""

    client_id: str
    client_name: str
    client_uri: str | None
    redirect_uri: str
    redirect_host: str
    scopes: tuple[str, ...]
    resource: str
    vouched: bool


async def keep_authorization_request(deps: Deps, request: AuthorizationRequest, *, now: float) -> str:
    """Stores `request` until somebody answers it; the token that the browser carries to the consent page. `now`: Unix seconds."""
    token = new_secret_token(deps.ids, "ar_")
    details = _request_keyring(token, deps.ids).seal(json.dumps(request), org_id=SERVICE_OWNER, field=_AUTHORIZATION_REQUEST_FIELD)
    await deps.store.write(
        insert_authorization_request,
        digest=secret_digest(token),
        client=request["client_id"],
        details=details,
        expires_at=now + AUTHORIZATION_REQUEST_SECONDS,
    )
    return token


async def consent_question(deps: Deps, *, token: str, now: float) -> ConsentQuestion | None:
    """The question of the request that `token` opens; None where it was answered or is too old. `now`: Unix seconds."""
    request = await _open_authorization_request(deps, token, now)
    if request is None:
        return None
    redirect_uri = request["redirect_uri"]
    parts = urlsplit(redirect_uri)
    return ConsentQuestion(
        client_id=request["client_id"],
        client_name=request["client_name"],
        client_uri=request["client_uri"],
        redirect_uri=redirect_uri,
        redirect_host=parts.hostname if parts.scheme in ("http", "https") and parts.hostname else f"{parts.scheme}:",
        scopes=tuple(request["scopes"]),
        resource=request["resource"],
        vouched=request["vouched"],
    )


async def grant_consent(
    deps: Deps, *, token: str, person: str, organisation: str | None, scopes: Sequence[str], now: float, line: AuditRecord | None = None
) -> str:
    """The person says yes, for one of their organisations and some of the scopes: where the browser goes, with the code.

    `line` is the audit row of the consent. NotFound when the request was answered or is too old, or the organisation is none of theirs.
    """
    request = await _open_authorization_request(deps, token, now)
    if request is None:
        raise NotFound(ANSWERED, hint="Begin the login again in the program that asked")
    code = new_secret_token(deps.ids, "ac_")
    grant = AccessGrant(
        id=deps.ids.new(GRANT_PREFIX),
        person_id=person,
        organisation_id=organisation,
        client_id=request["client_id"],
        client_name=request["client_name"],
        scopes=" ".join(_granted_scopes(scopes, request["scopes"])),
        resource=request["resource"],
        created=now,
        expires_at=now + AUTHORIZATION_CODE_SECONDS,  # a login that its program never fetches is none; fetching gives it its time
    )
    bound = CodeBinding(
        redirect_uri=request["redirect_uri"],
        explicit=request["explicit"],
        challenge=request["challenge"],
        renewable=request["renewable"],
    )
    kept = NewCode(secret_digest(code), json.dumps(bound), now + AUTHORIZATION_CODE_SECONDS)
    await deps.store.write(keep_consent, request=secret_digest(token), grant=grant, code=kept, line=line, now=now)
    return authorization_answer_url(request["redirect_uri"], code=code, state=request["state"], iss=token_issuer(deps.site))


async def deny_consent(deps: Deps, *, token: str, now: float) -> str | None:
    """The person says no: the address that the browser goes to, with the error; None where `token` was answered or is too old."""
    request = await _open_authorization_request(deps, token, now)
    if request is None or not await deps.store.write(end_authorization_request, digest=secret_digest(token), now=now):
        return None
    return authorization_answer_url(
        request["redirect_uri"],
        error="access_denied",
        error_description="The person did not allow it",
        state=request["state"],
        iss=token_issuer(deps.site),
    )


async def _open_authorization_request(deps: Deps, token: str, now: float) -> AuthorizationRequest | None:
    found = await deps.store.read(find_authorization_request, digest=secret_digest(token), now=now)
    if found is None:
        return None
    return cast(
        AuthorizationRequest,
        json.loads(_request_keyring(token, deps.ids).open(found.details, org_id=SERVICE_OWNER, field=_AUTHORIZATION_REQUEST_FIELD)),
    )


def _granted_scopes(scopes: Sequence[str], offered: Sequence[str]) -> list[str]:
    """The scopes in our order with what they include; never one that was not asked for, and at least one.

    Choice: a program that did not ask for `read` is not told of it: some refuse a token whose scope has a word that they did not ask for.
    """
    beyond = [scope for scope in scopes if scope not in offered]
    if beyond or not scopes:
        raise BadRequest(
            f"scopes: {', '.join(beyond) or 'none'} of {', '.join(offered)} asked for",
            param="scopes",
            hint="Allow one or more of the scopes that the program asked for",
        )
    return [scope for scope in with_included_scopes(scopes) if scope in offered]


def authorization_answer_url(redirect_uri: str, **answer: str | None) -> str:
    """The program's own `redirect_uri`, untouched, with `answer` as its query."""
    query = urlencode({name: value for name, value in answer.items() if value is not None})
    return redirect_uri + ("&" if "?" in redirect_uri else "?") + query


def _request_keyring(token: str, ids: Ids) -> Keyring:
    """Seals with the token itself: a request, with the program's `state` in it, opens for the browser that carries the token alone."""
    return Keyring(f"request:{base64.b64encode(secret_digest(f'seal|{token}')).decode()}", ids.bytes)
