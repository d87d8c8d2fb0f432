"""What an endpoint is told of, and where it is."""

from collections.abc import Sequence
from typing import Annotated

import orjson
from pydantic import Field

from clients.mail.letter import Letter
from operations.connectivity.webhook_endpoints import (
    CHOSEN_ENDPOINT_EXAMPLE,
    ENDPOINT_VERSION,
    EXAMPLE_ENDPOINT_ID,
    EndpointRef,
    WebhookEndpoint,
    endpoint_not_found,
    refuse_subscription,
    render_endpoint,
)
from operations.deps import Ctx
from operations.event_types.catalogue import PROMISED_TYPES
from operations.ledger.event_reading import TypePatterns, wanted_types
from operations.ledger.event_rights import readable_types
from operations.ledger.webhooks import check_webhook_address
from operations.letters import queue_letter, seal_letter
from operations.vocabulary import LineTag
from registry.clock import rfc3339_utc
from registry.errors import BadRequest, Conflict, NotFound, Restricted
from registry.free_text import FreeText
from registry.operation import Example, Scope, SpendKind, operation
from storage.allowances import allowance_for, take_allowances
from storage.endpoint_selections import EndpointSelection, find_selection, put_selection
from storage.engine.sql import Connection
from storage.members import list_people
from storage.webhook_endpoints import move_endpoint, read_endpoint

MOST_TAGS_CHOSEN = 20
ADDRESS_MAILS_PER_HOUR = 20
"""Choice: whoever changes addresses over and over must not fill the mailboxes of admins."""
MOST_ADMINS_MAILED = 10
MOST_PEOPLE_SEARCHED = 1000
ADDRESS_MAIL_SECONDS = 7 * 86_400


class EndpointChange(EndpointRef):
    """Which endpoint, and what is to change; what is left out stays."""

    null_clears = frozenset({"types", "tags"})

    url: Annotated[str | None, Field(description="Another https URL of a public host; the secret stays.")] = None
    types: TypePatterns = None
    tags: Annotated[
        list[LineTag] | None,
        Field(min_length=1, max_length=MOST_TAGS_CHOSEN, description="Only events of lines with one of these; needs types. null: all."),
    ] = None
    description: Annotated[FreeText | None, Field(max_length=200, description="For people.")] = None


def as_json(values: Sequence[str] | None) -> str | None:
    return None if values is None else orjson.dumps(list(dict.fromkeys(values))).decode()


def changed_selection(before: EndpointSelection, params: EndpointChange, ctx: Ctx) -> EndpointSelection:
    """What the endpoint has chosen after the change. Whoever changes address or types gives the endpoint their rights."""
    given = params.model_fields_set
    types = as_json(params.types) if "types" in given else before.types
    tags = as_json(params.tags) if "tags" in given else before.tags
    if tags is not None and types is None:
        raise BadRequest(
            "tags: an endpoint without types gets the events of all lines; tags narrow what it has chosen",
            param="tags",
            hint='Send types, too, for example ["line.*", "esim.*"], or null for tags',
        )
    changed = before._replace(types=types, tags=tags, description=before.description if params.description is None else params.description)
    if "types" not in given and params.url is None:
        return changed
    caller = ctx.caller
    return changed._replace(kind=caller.kind, principal=caller.principal, credential=caller.key_id, changed=int(ctx.now))


def address_letter(to: str, endpoint: str, ctx: Ctx) -> Letter:
    """The mail that tells of another address. It holds nothing that somebody has written, so not the address either."""
    caller = ctx.caller
    text = (
        f"Events of your organisation {ctx.organisation} that go to the webhook endpoint {endpoint} are sent to another address since "
        f"{rfc3339_utc(ctx.now)}.\n\n"
        f"It was changed by {caller.principal}, with {caller.key_id or 'a login'}.\n\n"
        "list_connectivity_webhook_endpoints shows the address. If nobody of you has changed it, delete the endpoint, revoke the key or "
        "remove the member.\n"
    )
    return Letter(to, "The address of a webhook endpoint was changed", text)


def tell_admins_of_address(connection: Connection, endpoint: str, ctx: Ctx) -> None:
    """Mails the admins that an endpoint has another address, unless they were mailed so very often within the hour."""
    deps, now = ctx.deps, ctx.now
    allowance = allowance_for("endpoint_address_mail", ctx.organisation, ADDRESS_MAILS_PER_HOUR)
    if take_allowances(connection, wanted=[allowance], now=now) is not None:
        return
    people = list_people(connection, organisation=ctx.organisation, now=now, after=None, most=MOST_PEOPLE_SEARCHED)
    addresses = [each.email for each in people if each.active and each.role == "admin" and each.email is not None]
    for address in addresses[:MOST_ADMINS_MAILED]:
        letter = address_letter(address, endpoint, ctx)
        queue_letter(connection, seal_letter(letter, ids=deps.ids, keyring=deps.keyring, expires_at=now + ADDRESS_MAIL_SECONDS), deps.clock)


def check_promised_types(selection: EndpointSelection, params: EndpointChange, ctx: Ctx) -> None:
    """Raises Restricted where a credential that may not read the promised types would say where they are sent."""
    if selection.types is not None or not params.model_fields_set & {"url", "types"}:
        return
    unreadable = set(PROMISED_TYPES) - readable_types(ctx.caller, ctx.deps.internal_calls.operations_in)
    if unreadable:
        raise Restricted(
            f"types: an endpoint without types is sent {min(unreadable)}, which this credential may not read",
            param="types",
            hint="Send types that list_event_types shows, or use another credential",
        )


@operation(
    "PATCH",
    "/v1/connectivity/webhook_endpoints/{id}",
    spends=SpendKind.OPEN,
    scope=Scope.ANY,
    versioned=ENDPOINT_VERSION,
    title="Update webhook endpoint",
    raises=[NotFound, Conflict, BadRequest],
    examples=[
        Example(
            "Be told of orders and of a low balance, too",
            {
                "id": EXAMPLE_ENDPOINT_ID,
                "types": ["esim.*", "order.*", "organisation.balance_*"],
                "description": "The desk that looks after orders",
            },
            CHOSEN_ENDPOINT_EXAMPLE,
        )
    ],
)
async def update_webhook_endpoint(ctx: Ctx, params: EndpointChange) -> WebhookEndpoint:
    """Choose an endpoint's event types, or change its URL, tags or description.

    `types` null: esim.issued, esim.first_attach and usage.threshold_reached again, as endpoints that never chose.

    Types are names or globs (list_event_types). The endpoint holds your rights from then on: it is sent what this key or login could read
    at that moment, and nothing more once it has ended, which disables the endpoint; somebody else may then choose anew. A new URL is vetted
    as the first one was, keeps the secret, and gets what is still to be sent.
    """
    if params.url is not None:
        await check_webhook_address(ctx, params.url)
    operations_in = ctx.deps.internal_calls.operations_in
    if params.types is not None and not wanted_types(params.types, ctx.caller, operations_in):
        raise BadRequest(
            "types: of these types you may read no event, so the endpoint would be sent nothing",
            param="types",
            hint=f"You may read {len(readable_types(ctx.caller, operations_in))} types: list_event_types shows them",
        )
    if not params.model_fields_set - {"id"}:
        raise BadRequest("Nothing is to change", param="types", hint="Send url, types, tags or description")

    def change(connection: Connection) -> WebhookEndpoint:
        row = read_endpoint(connection, endpoint=params.id, organisation=ctx.organisation)
        if row is None:
            raise endpoint_not_found(params.id)
        refuse_subscription(connection, row.id)
        before = find_selection(connection, endpoint=row.id)
        selection = changed_selection(before or EndpointSelection(row.id, ctx.organisation, None, None, "", "", "", "", 0), params, ctx)
        check_promised_types(selection, params, ctx)
        put_selection(connection, row=selection)
        if params.url is not None and params.url != row.url:
            move_endpoint(connection, endpoint=row.id, organisation=ctx.organisation, url=params.url)
            tell_admins_of_address(connection, row.id, ctx)
            row = row._replace(url=params.url)
        chosen = f"types {selection.types or 'as promised'}, tags {selection.tags or 'all'}{', url' if params.url else ''}"
        ctx.record_change(f"{row.id}: {chosen}")
        return render_endpoint(row, selection)

    changed = await ctx.settle_result(change)
    ctx.deps.post()
    return changed
