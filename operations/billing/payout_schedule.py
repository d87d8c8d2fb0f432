"""When an organisation's balance is paid out by itself."""

from typing import Annotated, Literal

from pydantic import Field, model_validator
from typing_extensions import TypedDict

from clients.payments.records import Interval, Schedule, Weekday
from operations.deps import Ctx
from operations.services.payments.connect import own_payments_account
from registry.errors import Conflict
from registry.limits import Scope
from registry.model import FieldRule, Input, Nothing
from registry.operation import Example, operation
from storage.money.connect import Connected


class NewSchedule(Input):
    """When to pay out."""

    interval: Annotated[Interval, Field(description="manual: only when you ask for a payout.")]
    weekday: Annotated[Weekday | None, Field(description="Day of weekly payouts; required with weekly, refused otherwise.")] = None
    month_day: Annotated[
        int | None,
        Field(ge=1, le=31, description="Day of monthly payouts, 1-31; a shorter month pays out on its last. With monthly only."),
    ] = None

    @model_validator(mode="after")
    def check(self) -> "NewSchedule":
        """The day belongs to its interval."""
        days = (("weekday", "weekly", self.weekday, '"friday"'), ("month_day", "monthly", self.month_day, "1"))
        for name, interval, value, such in days:
            if self.interval == interval and value is None:
                text = f"{name}: missing; it is required when interval is {interval}"
                raise FieldRule(text, param=name, hint=f'Such as {{"interval": "{interval}", "{name}": {such}}}')
            if self.interval != interval and value is not None:
                text = f"{name}: goes with the interval {interval} alone, and interval is {self.interval}; leave it out"
                raise FieldRule(text, param=name, hint=f'Leave {name} out, or send {{"interval": "{interval}"}} with it')
        return self


class PayoutSchedule(TypedDict):
    """`weekday` is null unless weekly, `month_day` unless monthly."""

    object: Literal["payout_schedule"]
    interval: Interval
    weekday: Weekday | None
    month_day: int | None
    delay_days: Annotated[int | None, Field(description="Days that money rests first, by the processor's rule; null where not told")]


WEEKLY: PayoutSchedule = {"object": "payout_schedule", "interval": "weekly", "weekday": "friday", "month_day": None, "delay_days": 7}


@operation(
    "GET",
    "/v1/operator-billing/payouts/schedule",
    processor=True,
    title="Get payout schedule",
    access=own_payments_account,
    raises=[Conflict],
    examples=[Example("When are we paid?", {}, WEEKLY)],
)
async def operator_billing_get_payout_schedule(ctx: Ctx, params: Nothing, account: Connected) -> PayoutSchedule:
    """Get when your payment account is paid out by itself.

    Without an account there is none: 409.
    """
    del params
    ctx.reached_upstream = True
    return schedule_of(await ctx.deps.payments.schedule_of(account.account))


@operation(
    "PATCH",
    "/v1/operator-billing/payouts/schedule",
    scope=Scope.WRITE,
    processor=True,
    title="Update payout schedule",
    access=own_payments_account,
    raises=[Conflict],
    examples=[Example("Pay us every Friday", {"interval": "weekly", "weekday": "friday"}, WEEKLY)],
)
async def operator_billing_update_payout_schedule(ctx: Ctx, params: NewSchedule, account: Connected) -> PayoutSchedule:
    """Set when your payment account is paid out: by hand, daily, weekly, monthly.

    weekly needs `weekday`, monthly needs `month_day`. What is already on its way is not changed.

    With manual nothing is paid out until operator_billing_create_manual_payout asks for it.
    """
    wanted = Schedule(params.interval, params.weekday, params.month_day)
    ctx.reached_upstream = True
    return schedule_of(await ctx.deps.payments.set_schedule(account.account, wanted, key=ctx.call.request_id))


def schedule_of(found: Schedule) -> PayoutSchedule:
    """As it is shown."""
    return {
        "object": "payout_schedule",
        "interval": found.interval,
        "weekday": found.weekday,
        "month_day": found.month_day,
        "delay_days": found.delay_days,
    }
