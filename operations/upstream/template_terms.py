"""What a product or a plan of a shop promises, beside what a package of its template has: data, days, countries, and what it costs.

An offer that promises more than its package has is refused when it is made. One that promises less, or sells below cost, is taken with
warnings. Those that are there are compared whenever they are shown, by what the charging system says then.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import anyio

from clients.ocs.templates import Template
from operations.deps import Ctx
from operations.plans import BYTES_PER_MB, PlanWarning, PlanWarningCode
from operations.upstream.connection import AccountGone, Upstream, connect_upstream
from operations.upstream.resellers import find_template, own_templates, template_countries, zone_countries
from operations.vocabulary import RESERVED_COUNTRY_CODES
from registry.errors import BadRequest, NotFound, OcsError
from registry.operation import FieldRule

COST_CURRENCY = "EUR"
"""What templates are priced in at the charging system, which names no currency."""
CENTS = 100
NAMED_COUNTRIES = 12
COMPARISON_PATIENCE_SECONDS = 5.0
"""Choice: for how long an answer waits for the charging system, which it can do without."""
ADAPTED_DATA_MB_LIMIT, ADAPTED_DAYS_LIMIT = 1_000_000_000, 3650
"""What a package can be set to (operations/subscribers/packages.py): more is a mistake."""


class PromiseExceedsTemplate(BadRequest):
    """A buyer would get less than is promised."""

    code = "promise_exceeds_template"


class PlanPromise(NamedTuple):
    """What buyers are promised, and the price in minor units of `currency`. `adapt`: packages get these data and days."""

    data_mb: int
    validity_days: int
    countries: Sequence[str]
    price_cents: int
    currency: str
    adapt: bool


class TemplateTerms(NamedTuple):
    """What a package of a template has. `countries` is empty where its zone names none; `cost` is in EUR."""

    data_bytes: int
    days: int | None
    countries: frozenset[str]
    cost: Decimal | None
    recurring: bool


class TermsDifference(NamedTuple):
    """One difference between an offer and its template. `field` is the one at fault, and `fix` what to do, where more is promised."""

    code: PlanWarningCode
    message: str
    field: str = ""
    fix: str = ""


def terms_of_template(template: Template, countries: Mapping[int | None, Sequence[str]]) -> TemplateTerms:
    """What packages of `template` have; `countries` by the number of the zone."""
    cost = template.get("cost")
    days = template.get("perioddays", 0)
    return TemplateTerms(
        data_bytes=max(0, template.get("databyte") or 0),
        days=days if days and days > 0 else None,
        countries=plain_countries(template_countries(template, countries)),
        cost=None if cost is None else read_cost(cost),
        recurring=bool(template.get("recurring")),
    )


def read_cost(cost: float) -> Decimal | None:
    """The exact decimal that the charging system wrote; None for what is no amount."""
    try:
        amount = Decimal(str(cost))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None


def plain_countries(codes: Iterable[str]) -> frozenset[str]:
    """Upper case, and each country by one code: UK is GB."""
    return frozenset(RESERVED_COUNTRY_CODES.get(code.upper(), code.upper()) for code in codes)


def compare_terms(promise: PlanPromise, template: TemplateTerms) -> list[TermsDifference]:
    """How the offer differs from its template; empty where the buyer gets what is promised, for no more than it costs."""
    own = [] if promise.adapt else [*compare_data(promise, template), *compare_days(promise, template)]
    return [*own, *compare_countries(promise, template), *compare_cost(promise, template), *compare_rhythm(template)]


def compare_data(promise: PlanPromise, template: TemplateTerms) -> list[TermsDifference]:
    """In bytes where more is promised. Choice: what is below a megabyte is not promised less."""
    held = template.data_bytes // BYTES_PER_MB
    if promise.data_mb * BYTES_PER_MB > template.data_bytes:
        text = f"{promise.data_mb} MB are promised, and a package of the template holds {held} MB (of 10^6 bytes)"
        fix = f"lower data_mb to {held}" if held else "name a template with data"
        return [TermsDifference("data_exceeds_template", text, "data_mb", fix)]
    if promise.data_mb < held:
        text = f"{promise.data_mb} MB are promised, and a package of the template holds {held} MB (of 10^6 bytes): buyers get more"
        return [TermsDifference("data_below_template", text)]
    return []


def compare_days(promise: PlanPromise, template: TemplateTerms) -> list[TermsDifference]:
    days = template.days
    if days is None:
        return [TermsDifference("template_not_compared", "The charging system does not say how many days a package of the template runs")]
    if promise.validity_days > days:
        text = f"{promise.validity_days} days are promised, and a package of the template runs {days}"
        return [TermsDifference("days_exceed_template", text, "validity_days", f"lower validity_days to {days}")]
    if promise.validity_days < days:
        text = f"{promise.validity_days} days are promised, and a package of the template runs {days}: buyers get more"
        return [TermsDifference("days_below_template", text)]
    return []


def compare_countries(promise: PlanPromise, template: TemplateTerms) -> list[TermsDifference]:
    """An offer without countries promises what the template covers."""
    promised = plain_countries(promise.countries)
    if not promised:
        return []
    if not template.countries:
        return [TermsDifference("template_not_compared", "The charging system names no countries of the template's zone")]
    beyond, unnamed = promised - template.countries, template.countries - promised
    found: list[TermsDifference] = []
    if beyond:
        text = f"the template does not work in {country_text(beyond)}, which {'is' if len(beyond) == 1 else 'are'} promised"
        found.append(TermsDifference("countries_exceed_template", text, "countries", f"leave {country_text(beyond)} out of countries"))
    if unnamed:
        text = f"The template works in {len(template.countries)} countries, and {len(promised - beyond)} of them are promised; also in "
        found.append(TermsDifference("countries_below_template", text + country_text(unnamed)))
    return found


def country_text(codes: frozenset[str]) -> str:
    named = sorted(codes)
    more = len(named) - NAMED_COUNTRIES
    return ", ".join(named[:NAMED_COUNTRIES]) + (f" and {more} more" if more > 0 else "")


def compare_cost(promise: PlanPromise, template: TemplateTerms) -> list[TermsDifference]:
    """Choice: a template that costs nothing, or of which no cost is told, has none to compare."""
    if not template.cost or template.cost < 0:
        return []
    cost = f"{template.cost:.2f} {COST_CURRENCY}"
    if promise.currency != COST_CURRENCY:
        text = f"The price is in {promise.currency}, and the template costs {cost}: whether it covers that was not compared"
        return [TermsDifference("cost_not_compared", text)]
    if promise.price_cents < template.cost * CENTS:
        text = f"The price, {Decimal(promise.price_cents) / CENTS:.2f} {promise.currency}, is below what the template costs, {cost}"
        return [TermsDifference("price_below_cost", text)]
    return []


def compare_rhythm(template: TemplateTerms) -> list[TermsDifference]:
    if not template.recurring:
        return []
    text = "The template is a recurring one: the charging system puts single packages of such a one on no eSIM, so none may be issued"
    return [TermsDifference("template_recurring", text)]


def require_promise_kept(differences: Sequence[TermsDifference], template_id: int) -> None:
    """Raises PromiseExceedsTemplate, which names everything that is promised and not there, and what to do."""
    beyond = [each for each in differences if each.field]
    if not beyond:
        return
    fixes = " and ".join(each.fix for each in beyond)
    adapts = (
        " Or send adapt: true, and the package gets the data and the days that are promised"
        if any(each.field != "countries" for each in beyond)
        else " Or name another template: list_package_templates finds them by country"
    )
    raise PromiseExceedsTemplate(
        f"{beyond[0].field}: {'; '.join(each.message for each in beyond)}. Nothing was stored",
        param=beyond[0].field,
        hint=f"For template {template_id}: {fixes}.{adapts}",
    )


def adaptation_fault(data_mb: int | None, validity_days: int | None) -> FieldRule | None:
    """The rule that is broken where a package cannot be set to these data and days; None is not judged."""
    for name, value, limit in (("data_mb", data_mb, ADAPTED_DATA_MB_LIMIT), ("validity_days", validity_days, ADAPTED_DAYS_LIMIT)):
        if value is not None and value > limit:
            hint = f"Send {name} of at most {limit}, or leave adapt out"
            return FieldRule(f"{name}: {value} is too much for adapt, which sets packages to at most {limit}", param=name, hint=hint)
    return None


NOT_CONNECTED = PlanWarning(
    code="template_not_compared",
    message="Your organisation is not connected to the charging system, so nothing compared this with its template",
)
NOT_READ = PlanWarning(
    code="template_not_compared",
    message="The charging system did not show the template just now, so nothing compared this with it; read it again later",
)


def template_is_missing(template_id: int) -> PlanWarning:
    return {
        "code": "template_not_found",
        "message": f"Your account has no package template {template_id}: no eSIM can be issued until there is one",
    }


def render_warnings(differences: Sequence[TermsDifference]) -> list[PlanWarning]:
    return [{"code": each.code, "message": each.message[:1].upper() + each.message[1:]} for each in differences]


class OfferedTerms(NamedTuple):
    """An offer, and the template that it draws from."""

    template_id: int
    promise: PlanPromise


async def check_new_offer(ctx: Ctx, offer: OfferedTerms, *, changeable: bool = True) -> list[PlanWarning]:
    """The warnings of an offer that is about to be stored. Raises PromiseExceedsTemplate, and NotFound for a template that is not there
    where the offer is not `changeable`. Waits a few seconds for the network.

    Choice: where the template cannot be read, the offer is taken, as it was before anything was compared. Where it is not there, an offer
    that can be changed is taken; one that never can would be of no use for good.
    """
    if ctx.caller.connection is None:
        return [NOT_CONNECTED]
    terms: TemplateTerms | None = None
    with anyio.move_on_after(COMPARISON_PATIENCE_SECONDS):
        try:
            upstream = await connect_upstream(ctx)
            template = await find_template(upstream, offer.template_id, "package_template_id")
            terms = terms_of_template(template, await zone_countries(upstream))
        except NotFound:
            if not changeable:
                raise NotFound(
                    f"package_template_id: your account has no package template {offer.template_id}; nothing was stored",
                    param="package_template_id",
                    hint="list_package_templates names the ones you can use",
                ) from None
            return [template_is_missing(offer.template_id)]
        except (AccountGone, OcsError):
            return [NOT_READ]
    if terms is None:
        return [NOT_READ]
    differences = compare_terms(offer.promise, terms)
    require_promise_kept(differences, offer.template_id)
    return render_warnings(differences)


async def compare_offers(ctx: Ctx, offers: Sequence[OfferedTerms]) -> list[list[PlanWarning]]:
    """The warnings of each of `offers`, by what the charging system said in the last two minutes. Waits a few seconds for the network."""
    if not offers:
        return []
    if ctx.caller.connection is None:
        return [[NOT_CONNECTED] for _ in offers]
    found: Mapping[int, TemplateTerms] | None = None
    with anyio.move_on_after(COMPARISON_PATIENCE_SECONDS):
        try:
            found = await read_template_terms(await connect_upstream(ctx))
        except (AccountGone, OcsError):
            return [[NOT_READ] for _ in offers]
    if found is None:
        return [[NOT_READ] for _ in offers]
    return [
        [template_is_missing(offer.template_id)]
        if (terms := found.get(offer.template_id)) is None
        else render_warnings(compare_terms(offer.promise, terms))
        for offer in offers
    ]


async def read_template_terms(upstream: Upstream) -> dict[int, TemplateTerms]:
    """What packages of each of the caller's templates have, by the template's number. Waits for the network."""
    countries, templates = await zone_countries(upstream), await own_templates(upstream)
    return {id: terms_of_template(each, countries) for each in templates if (id := each.get("prepaidpackagetemplateid"))}
