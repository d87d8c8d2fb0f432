"""The throttling and the recurring members of a template."""

from dataclasses import replace

from clients.sandbox.ocs.entities import Template, Throttle
from clients.sandbox.ocs.params import Fields, flag, one_of, positive, refuse

# The speeds of hlrSetBitrate without 32, 64 and 2048 (quirk 12).
SPEEDS = (128, 256, 384, 512, 1024, 3072, 5120, 7680, 10240, 20480, 51200, 102400)
MONTHLY = 2


def read_throttling(fields: Fields, template: Template) -> Template:
    """The template with the throttling that the request describes."""
    active = fields.need("throttlingActive", flag)
    throttles = tuple(read_throttle(fields, number) for number in range(1, 5))
    action = fields.maybe("throttlingErrorAction", one_of((0, 1)))
    if active and action is None:
        raise refuse("params.throttlingErrorAction is missing: it is mandatory when throttlingActive is true")
    return replace(template, throttling=active, throttles=throttles, throttling_error_action=action)


def read_throttle(fields: Fields, number: int) -> Throttle | None:
    """A threshold: both of its members or none."""
    percent = fields.maybe(f"throttlingThreshold{number}Perc", percentage)
    limit = fields.maybe(f"throttlingThreshold{number}Limit", one_of(SPEEDS))
    if (percent is None) != (limit is None):
        raise refuse(f"throttlingThreshold{number}Perc and throttlingThreshold{number}Limit go together")
    return None if percent is None or limit is None else Throttle(percent, limit)


def percentage(value: object, path: str) -> int:
    """A share of the volume."""
    found = positive(value, path)
    if found > 100:
        raise refuse(f"{path} must be at most 100 percent")
    return found


def read_recurrence(fields: Fields, template: Template) -> Template:
    """The template with the recurrence that the request describes."""
    recurring = fields.need("recurring", flag)
    periodicity = fields.maybe("recurringPeriodicityType", one_of((0, 1, 2)))
    frequency = fields.maybe("recurringPeriodicityFrequency", positive)
    carry_over, occurrences = fields.maybe("reportUnitsPreviousPackage", flag), fields.maybe("nbOccurrence", positive)
    if not recurring:
        return replace(template, recurring=False, periodicity=None, frequency=None, occurrences=None, carry_over=False)
    if periodicity is None or frequency is None or carry_over is None:
        raise refuse("recurringPeriodicityType, recurringPeriodicityFrequency and reportUnitsPreviousPackage are mandatory")
    if occurrences is None and periodicity != MONTHLY:
        raise refuse("params.nbOccurrence is missing: only a monthly package may be endless")
    return replace(template, recurring=True, periodicity=periodicity, frequency=frequency, occurrences=occurrences, carry_over=carry_over)
