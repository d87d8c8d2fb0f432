"""The change that a plan makes to each of its lines: which actions there are, and what each of them takes."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal, NamedTuple, Self, cast

import orjson
from pydantic import Field, TypeAdapter, ValidationError, model_validator

from operations.times import EndTime
from operations.vocabulary import LARGEST_ID, UpstreamId
from registry.errors import BadRequest
from registry.input_bounds import MaxEntries
from registry.operation import CamelInput
from registry.validation_errors import describe_problem

ActionWord = Literal[
    "set_status", "set_steering_list", "set_traffic", "set_bitrate", "assign_package", "assign_series", "stop_series",
    "set_package_status", "set_package_expiry", "set_package_limits", "delete_packages", "move_account", "set_tags", "end_of_life",
]  # fmt: skip
SpeedWord = Literal[
    "KB_32", "KB_64", "KB_128", "KB_256", "KB_384", "KB_512", "KB_1024", "KB_2048", "KB_3072", "KB_5120", "KB_7680", "KB_10240",
    "KB_20480", "KB_51200", "KB_102400", "UNLIMITED",
]  # fmt: skip
TagWord = Annotated[str, Field(pattern=r"^[a-z0-9._-]{1,40}$")]
VALIDITY_DAYS_LIMIT = 3650
VALUE_FAULT_LENGTH = 200
TAGS_LIMIT = 20


class ActionFields(NamedTuple):
    """Which fields an action takes. `required`: at least one of them. `value`: the field that a line's own value of a CSV stands for."""

    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    value: str | None = None


ACTION_FIELDS: Mapping[ActionWord, ActionFields] = {
    "set_status": ActionFields(("status",), value="status"),
    "set_steering_list": ActionFields(("list_id", "no_list"), ("push",), value="list_id"),
    "set_traffic": ActionFields(("data", "moc", "mtc", "sms")),
    "set_bitrate": ActionFields(("speed_limit",), value="speed_limit"),
    "assign_package": ActionFields(("package_template_id",), ("validity_days",), value="package_template_id"),
    "assign_series": ActionFields(("package_template_id",), value="package_template_id"),
    "stop_series": ActionFields((), ("package_template_id",)),
    "set_package_status": ActionFields(("status",), ("package_template_id",), value="status"),
    "set_package_expiry": ActionFields(("expires", "validity_days"), ("package_template_id",), value="validity_days"),
    "set_package_limits": ActionFields(
        ("data_limit", "moc_limit", "mtc_limit", "mo_sms_limit", "mt_sms_limit"), ("package_template_id",), value="data_limit"
    ),
    "delete_packages": ActionFields((), ("package_template_id",)),
    "move_account": ActionFields(("account_id",), value="account_id"),
    "set_tags": ActionFields(("add_tags", "remove_tags")),
    "end_of_life": ActionFields(("irreversible",)),
}
EXCLUSIVE_FIELDS: Mapping[ActionWord, tuple[str, ...]] = {
    "set_steering_list": ("list_id", "no_list"),
    "set_package_expiry": ("expires", "validity_days"),
}
"""Fields of an action that say the same thing in two ways."""
STATUS_WORDS: Mapping[str, tuple[str, ...]] = {
    "set_status": ("ACTIVE", "SUSPENDED", "INACTIVE", "DISCONNECTED"),
    "set_package_status": ("ACTIVE", "INACTIVE"),
}

Units = Annotated[int, Field(ge=0, le=LARGEST_ID)]


class RequestedChange(CamelInput):
    """One change: the action, and the fields that it takes."""

    action: Annotated[ActionWord, Field(description="What happens to each line.")]
    status: Annotated[
        Literal["ACTIVE", "SUSPENDED", "INACTIVE", "DISCONNECTED"] | None,
        Field(description="set_status: any; set_package_status: INACTIVE pauses, ACTIVE resumes."),
    ] = None
    list_id: Annotated[UpstreamId | None, Field(description="set_steering_list: id of list_steering_lists.")] = None
    no_list: Annotated[Literal[True] | None, Field(description="set_steering_list: takes the line's own list away.")] = None
    push: Annotated[Literal[True] | None, Field(description="set_steering_list: tells the SIMs by SMS, too.")] = None
    data: Annotated[bool | None, Field(description="set_traffic: mobile data.")] = None
    moc: Annotated[bool | None, Field(description="set_traffic: outgoing calls.")] = None
    mtc: Annotated[bool | None, Field(description="set_traffic: incoming calls.")] = None
    sms: Annotated[bool | None, Field(description="set_traffic: outgoing SMS.")] = None
    speed_limit: Annotated[SpeedWord | None, Field(description="set_bitrate: KB_256 are 256 kbit/s.")] = None
    package_template_id: Annotated[
        UpstreamId | None, Field(description="What is assigned; else only packages of this template are changed, absent: of any.")
    ] = None
    validity_days: Annotated[
        int | None, Field(ge=1, le=VALIDITY_DAYS_LIMIT, description="assign_package, set_package_expiry: days from now, 1-3650.")
    ] = None
    expires: Annotated[EndTime | None, Field(description="set_package_expiry: UTC; a date alone is its last second.")] = None
    data_limit: Annotated[Units | None, Field(description="set_package_limits: bytes, used ones included.")] = None
    moc_limit: Annotated[Units | None, Field(description="set_package_limits: calls made, seconds.")] = None
    mtc_limit: Annotated[Units | None, Field(description="set_package_limits: calls received, seconds.")] = None
    mo_sms_limit: Annotated[Units | None, Field(description="set_package_limits: SMS sent.")] = None
    mt_sms_limit: Annotated[Units | None, Field(description="set_package_limits: SMS received.")] = None
    account_id: Annotated[UpstreamId | None, Field(description="move_account: an account of the same reseller.")] = None
    add_tags: Annotated[
        list[TagWord] | None, MaxEntries(TAGS_LIMIT), Field(min_length=1, max_length=TAGS_LIMIT, description="set_tags.")
    ] = None
    remove_tags: Annotated[
        list[TagWord] | None, MaxEntries(TAGS_LIMIT), Field(min_length=1, max_length=TAGS_LIMIT, description="set_tags.")
    ] = None
    irreversible: Annotated[Literal[True] | None, Field(description="end_of_life: true, since it is final.")] = None

    @model_validator(mode="after")
    def _fields_of_action(self) -> Self:
        """Raises BadRequest for a field that the action does not take. What is missing may stand in a CSV: `require_whole` looks."""
        wanted = ACTION_FIELDS[self.action]
        taken = (*wanted.required, *wanted.optional)
        extra = [name for name in self.given() if name not in taken]
        if extra:
            known = ", ".join(shown_name(name) for name in taken) or "no other field"
            raise BadRequest(
                f"change.{shown_name(extra[0])}: the action {self.action} does not take it",
                param=f"change.{shown_name(extra[0])}",
                hint=f"{self.action} takes {known}",
            )
        self._check_values()
        return self

    def _check_values(self) -> None:
        words = STATUS_WORDS.get(self.action, ())
        if self.status is not None and self.status not in words:
            raise BadRequest(
                f"change.status: got {self.status}; {self.action} takes {' or '.join(words)}",
                param="change.status",
                hint="end_of_life ends lines, set_status changes them",
            )
        given = [name for name in EXCLUSIVE_FIELDS.get(self.action, ()) if name in self.given()]
        if len(given) == 2:
            raise BadRequest(
                f"change.{shown_name(given[1])}: given together with {shown_name(given[0])}, and they exclude each other",
                param=f"change.{shown_name(given[1])}",
                hint="Send one of the two",
            )

    def given(self) -> list[str]:
        """The names of the fields that say something, beside the action."""
        return [name for name in type(self).model_fields if name != "action" and getattr(self, name) is not None]


def shown_name(field: str) -> str:
    """The one name of a field that documentation and refusals use."""
    return RequestedChange.model_fields[field].alias or field


def require_whole(change: RequestedChange, *, own_values: bool) -> None:
    """Raises BadRequest where a field is missing that the action needs. `own_values`: some lines have a value of their own."""
    wanted = ACTION_FIELDS[change.action]
    if own_values and wanted.value is None:
        raise BadRequest(
            f"lines.csv: the action {change.action} takes no value of a line's own, and the second column holds some",
            param="lines.csv",
            hint="Send the ICCIDs alone, one in each line",
        )
    missing = wanted.required and not any(name in change.given() for name in wanted.required)
    if missing and not (own_values and wanted.value is not None):
        names = [shown_name(name) for name in wanted.required]
        raise BadRequest(
            f"change.{names[0]}: missing; the action {change.action} needs it" + (" or another field" if len(names) > 1 else ""),
            param=f"change.{names[0]}",
            hint=f"Send {' or '.join(names)}",
        )


CHANGE_ADAPTER = TypeAdapter(RequestedChange)


def change_for_line(change: RequestedChange, value: str | None) -> RequestedChange:
    """The change of a line that has a value of its own, which comes in place of what the change says of the same thing.

    Raises ValueError, with a sentence, for a value that the action does not take.
    """
    field = ACTION_FIELDS[change.action].value
    if value is None or field is None:
        return change
    replaced = EXCLUSIVE_FIELDS.get(change.action, (field,))
    given = {name: each for name, each in change.model_dump(mode="json", exclude_none=True).items() if name not in replaced}
    given[field] = int(value) if value.isascii() and value.isdigit() else value
    if field == "list_id" and value == "none":
        del given["list_id"]
        given["no_list"] = True
    try:
        return RequestedChange.model_validate(given)
    except ValidationError as error:
        raise ValueError(f"{shown_name(field)}: {describe_problem(error.errors(include_url=False)[0])}"[:VALUE_FAULT_LENGTH]) from None
    except BadRequest as error:
        raise ValueError(error.message.removeprefix("change.")[:VALUE_FAULT_LENGTH]) from None


def stored_change(change: RequestedChange) -> str:
    """The text under which a change is kept."""
    return orjson.dumps(change.model_dump(mode="json", by_alias=True, exclude_none=True)).decode()


def read_change(text: str) -> RequestedChange:
    """The change that `stored_change` kept."""
    return CHANGE_ADAPTER.validate_json(text)


class LineValue(NamedTuple):
    """A line of a plan, and the value of its own that it has, if any."""

    iccid: str
    value: str | None


def lines_as_json(lines: Sequence[LineValue]) -> str:
    return orjson.dumps([list(line) for line in lines]).decode()


def parse_plan_lines(text: str) -> list[LineValue]:
    """The lines that `lines_as_json` kept."""
    return [LineValue(*cast("tuple[str, str | None]", pair)) for pair in orjson.loads(text or "[]")]
