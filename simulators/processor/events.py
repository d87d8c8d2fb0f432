"""Events: what happened at the processor, kept for the API and queued for the webhook."""

from simulators.processor.call import ApiCall, list_page
from simulators.processor.form import CallForm
from simulators.processor.refusal import JsonObject, ProcessorRefusal
from simulators.processor.state import PROCESSOR_API_VERSION, ProcessorState


def emit_event(state: ProcessorState, type: str, object: JsonObject, account: str, previous: JsonObject | None = None) -> JsonObject:
    """Tell of something: kept among the events, and queued for the webhook. `account`: in whose books it happened."""
    data: JsonObject = {"object": object}
    if previous is not None:
        data["previous_attributes"] = previous
    event: JsonObject = {
        "id": state.new_id("evt_"),
        "object": "event",
        "api_version": PROCESSOR_API_VERSION,
        "created": state.now(),
        "data": data,
        "livemode": state.live,
        "pending_webhooks": 1,
        "request": {"id": state.request, "idempotency_key": state.request_key},
        "type": type,
    }
    if account != state.platform:
        event["account"] = account
    state.events[str(event["id"])] = event
    state.pending.append(str(event["id"]))
    return event


def list_events(call: ApiCall, form: CallForm) -> JsonObject:
    """What happened in the account, newest first; in the platform's, its own events."""
    type, types = form.text("type"), form.texts("types")
    form.flag("delivery_success")
    if type is not None and types is not None:
        raise ProcessorRefusal("You may only specify one of these parameters: type, types.", param="type", early=True)
    own = None if not call.on_behalf else call.account
    rows = {
        id: event
        for id, event in call.state.events.items()
        if event.get("account") == own and event_type_matches(str(event["type"]), [type] if type else types)
    }
    return list_page(form, rows, dict, url="/v1/events", kind="event", when=lambda event: int(str(event["created"])))


def event_type_matches(type: str, wanted: list[str] | None) -> bool:
    """Of one of the types; the last part may be *."""
    if wanted is None:
        return True
    return any(one == type or (one.endswith(".*") and type.startswith(one[:-1])) for one in wanted)


def retrieve_event(call: ApiCall, form: CallForm) -> JsonObject:
    """One event of the account."""
    form.done()
    event = call.state.events.get(call.ids[0])
    if event is None or event.get("account") != (call.account if call.on_behalf else None):
        raise ProcessorRefusal(f"No such event: '{call.ids[0]}'", status=404, code="resource_missing", param="id", early=True)
    return dict(event)
