"""The pages of shops: what each sells, whether its plans give what they promise, and the forms that make and change shops and plans.

A form carries a digest of what was shown, so that nobody undoes unseen what somebody else has changed; sent twice, it changes once.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, cast, get_args
from urllib.parse import urlencode

from starlette.responses import Response

from operations.languages import LanguageTexts
from operations.network.templates import TemplateRow
from operations.plans import BYTES_PER_MB
from operations.storefronts.storefronts import ShownPlan, WholeStorefront
from operations.vocabulary import Currency
from operations.web_pages import page_policy
from transports.web.console.request import VERSION_FIELD, ConsoleRequest, PageRead
from transports.web.pages.calls import CallOutcome, filled_fields
from transports.web.pages.request import PageProblem, unknown_form
from transports.web.shop.brand import brand_of, shop_style, shop_templates
from transports.web.shop.storefront import offer_of, shop_facts
from transports.web.site import PageRoute, page_response

Fields = Mapping[str, object]
SHOPS_A_PAGE = 20
COMPARED_SHOPS = 5
"""Of how many shops the list compares the plans; of others their own page does."""
COMPARED_TEMPLATES = 200
CHOICE_OF_TEMPLATES = 50
TEMPLATE_FIELDS = ("templateId", "prepaidpackagetemplatename", "databyte", "perioddays", "cost")
WRONG_PLAN = frozenset(
    {
        "data_exceeds_template",
        "days_exceed_template",
        "countries_exceed_template",
        "price_below_cost",
        "template_recurring",
        "template_not_found",
    }
)
UNCOMPARED_PLAN = frozenset({"template_not_compared", "cost_not_compared"})
SHOP_FIELDS = ("name", "tagline", "accent", "support_email")
LOOK_FIELD = "look"
"""Of the form: that what is typed is to be looked at, and not saved."""
DONE_WORDS = ("created", "changed", "put")
TYPED_PRICE = re.compile(r"([0-9]{1,7})(?:[.,]([0-9]{1,2}))?", re.ASCII)
TYPED_NUMBER = re.compile(r"[0-9]{1,10}", re.ASCII)


class PlanCheck(NamedTuple):
    """A plan beside its template, where that could be read. `kind`: right, wrong or unknown; `codes` say how the two differ."""

    plan: ShownPlan
    template: TemplateRow | None
    kind: str
    codes: Sequence[str]


class ShopCheck(NamedTuple):
    """What a shop sells: its plans on sale, all its plans, and of those on sale how many are wrong or could not be compared."""

    on_sale: int
    plans: int
    wrong: int
    unknown: int


def check_plan(plan: ShownPlan, templates: Mapping[int, TemplateRow]) -> PlanCheck:
    codes = [each["code"] for each in plan["warnings"]]
    kind = "wrong" if not WRONG_PLAN.isdisjoint(codes) else "right" if UNCOMPARED_PLAN.isdisjoint(codes) else "unknown"
    return PlanCheck(plan, templates.get(plan["package_template_id"]), kind, codes)


def check_shop(checks: Sequence[PlanCheck]) -> ShopCheck:
    sold = [check.kind for check in checks if check.plan["on_sale"]]
    return ShopCheck(len(sold), len(checks), sold.count("wrong"), sold.count("unknown"))


def typed_cents(text: str) -> int | str:
    """An amount of hundredths as people type it, with a point or a comma; what is none stays as it is, and is refused."""
    found = TYPED_PRICE.fullmatch(text)
    return text if found is None else int(found[1]) * 100 + int((found[2] or "0").ljust(2, "0"))


def written_cents(texts: LanguageTexts, cents: int) -> str:
    """An amount as a field shows it, in the reader's language."""
    return f"{cents // 100}{texts.words['format.decimal']}{cents % 100:02}"


def typed_whole(text: str) -> int | str:
    return int(text) if TYPED_NUMBER.fullmatch(text) else text


def typed_countries(text: str) -> list[str]:
    """Country codes between commas or spaces."""
    return [code.upper() for code in re.split(r"[\s,;]+", text) if code]


def done_text(visit: ConsoleRequest) -> str:
    """What was just done, as the address after a form says; nothing on a page that says why not."""
    done = visit.query.get("done", "") if visit.request.method != "POST" else ""
    return visit.say(f"shops.done_{done}") if done in DONE_WORDS else ""


def templates_by_number(outcome: CallOutcome) -> Mapping[int, TemplateRow]:
    return {row.get("templateId", 0): row for row in cast("list[TemplateRow]", outcome.rows)}


async def show_shops(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What do we sell, is it open to buyers, and is it right?"""
    draw = partial(shops_page, visit, problem)
    return await (draw() if problem is not None else visit.draw_late("shops.html", {}, draw))


async def shops_page(visit: ConsoleRequest, problem: PageProblem | None) -> Response:
    """The shops, of the first of which the plans are compared with what the charging system has. Waits for it."""
    page: dict[str, object] = {"limit": SHOPS_A_PAGE}
    if visit.query.get("after"):
        page["starting_after"] = visit.query["after"]
    found = await visit.read_together(
        shops=PageRead("list_storefronts", page),
        review=PageRead("list_storefront_orders", {"status": "needs_review", "limit": 1}),
    )
    rows = found["shops"].rows
    wholes = await visit.read_together(**{str(row["id"]): PageRead("get_storefront", {"id": row["id"]}) for row in rows[:COMPARED_SHOPS]})
    checks = {
        id: check_shop([check_plan(plan, {}) for plan in plans_in(whole.body)]) for id, whole in wholes.items() if whole.problem is None
    }
    facts: Mapping[str, object] = {
        "shops": rows,
        "checks": checks,
        "review": bool(found["review"].rows),
        "currencies": [(code, code) for code in get_args(Currency)],
        "typed": visit.form if problem is not None else {},
        "next_page": f"?{urlencode({'after': str(rows[-1]['id'])})}" if rows and found["shops"].body.get("has_more") else "",
        "after": visit.query.get("after", ""),
    }
    return visit.draw("shops.html", facts, problem=problem or found["shops"].problem)


async def post_shops(visit: ConsoleRequest) -> Response:
    """Makes a shop."""
    if visit.form.get("do") != "create":
        raise unknown_form()
    given = filled_fields(visit.form, "slug", "name", "currency", "tagline", "accent", "support_email", "status")
    outcome = await visit.press("create_storefront", given)
    if outcome.problem is not None:
        return await show_shops(visit, outcome.problem)
    return visit.go(f"/shops/{outcome.body['id']}?done=created")


async def show_own_shop(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What does this shop sell, and does each plan give what it promises?"""
    found = await visit.read_together(
        shop=PageRead("get_storefront", {"id": visit.request.path_params["shop"]}),
        templates=PageRead("list_package_templates", {"limit": COMPARED_TEMPLATES, "fields": TEMPLATE_FIELDS}),
    )
    shop = found["shop"]
    if shop.problem is not None:
        return visit.draw("refused.html", {}, problem=shop.problem)
    templates = templates_by_number(found["templates"])
    checks = [check_plan(plan, templates) for plan in plans_in(shop.body)]
    typed: Mapping[str, str] = visit.form if problem is not None or LOOK_FIELD in visit.form else {}
    facts: Mapping[str, object] = {
        "shop": shop.body,
        "checks": checks,
        "sum": check_shop(checks),
        "unsaved": LOOK_FIELD in visit.form and problem is None,
        "preview": f"?{urlencode({name: typed.get(name, '') for name in SHOP_FIELDS})}" if typed.get("do") == "change" else "",
        "templates": found["templates"],
        "version": visit.form.get(VERSION_FIELD, "") if LOOK_FIELD in visit.form and problem is None else shop.version,
        "done": done_text(visit),
        "typed": typed,
    }
    return visit.draw("shop.html", facts, problem=problem)


async def show_preview(visit: ConsoleRequest) -> Response:
    """How do buyers see this shop, with what is typed and not saved yet? For a frame of ours: no form and no link of it leads anywhere.

    Whether eSIMs are left is not looked up, so that nothing is said to be sold out.
    """
    shop = await visit.read("get_storefront", id=visit.request.path_params["shop"])
    if shop.problem is not None:
        return visit.draw("refused.html", {}, problem=shop.problem)
    told = {**shop.body, **{name: visit.query[name] for name in SHOP_FIELDS if name in visit.query}}
    brand, texts = brand_of(told)._replace(open=False), visit.texts
    offers = [offer_of(plan, {}, texts) for plan in plans_in(shop.body) if plan["on_sale"]]
    style = shop_style(brand.accent)
    shared = {
        "root": visit.context.root,
        "brand": brand,
        "texts": texts,
        "t": texts.say,
        "here": f"{visit.context.root}/shop/{brand.slug}",
        "problem": None,
        "sells": False,
    }
    return page_response(
        shop_templates(),
        visit.request,
        "shop.html",
        {**shop_facts(offers, "", texts), **shared},
        style=style,
        posts_to="",
        status=200,
        headers={"content-security-policy": page_policy(style, framed_by="'self'")},
    )


async def post_own_shop(visit: ConsoleRequest) -> Response:
    """Opens or closes the shop, or changes what its buyers see of it; sends what differs, and nothing where nothing does."""
    id, do = visit.request.path_params["shop"], visit.form.get("do", "")
    if do == "change" and LOOK_FIELD in visit.form:
        return await show_own_shop(visit)
    wanted: dict[str, str | None]
    if do in ("publish", "close"):
        wanted = {"status": "published" if do == "publish" else "draft"}
    elif do == "change":
        wanted = {name: visit.form.get(name, "") or (None if name != "name" else "") for name in SHOP_FIELDS}
        wanted["accent"] = wanted["accent"] and wanted["accent"].lower()
    else:
        raise unknown_form()
    now = await visit.read("get_storefront", id=id)
    if now.problem is not None:
        return visit.draw("refused.html", {}, problem=now.problem)
    changes = differing(wanted, now.body)
    outcome = await visit.press("update_storefront", {"id": id, **changes}) if changes else now
    if outcome.problem is not None:
        return await show_own_shop(visit, outcome.problem)
    return visit.go(f"/shops/{id}?done=changed")


async def show_new_plan(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """Which template gives what this shop is to sell, and what is the plan on it?"""
    chosen = typed_whole(visit.form.get("package_template_id", "") or visit.query.get("template", ""))
    asked: dict[str, object] = {"limit": CHOICE_OF_TEMPLATES, "fields": TEMPLATE_FIELDS}
    asked |= {"templateId": chosen} if chosen else {"recurring": False, **filled_fields(visit.query, "q", "country")}
    found = await visit.read_together(
        shop=PageRead("get_storefront", {"id": visit.request.path_params["shop"]}),
        templates=PageRead("list_package_templates", asked),
    )
    if found["shop"].problem is not None:
        return visit.draw("refused.html", {}, problem=found["shop"].problem)
    rows = found["templates"].rows
    facts: Mapping[str, object] = {
        "shop": found["shop"].body,
        "templates": found["templates"],
        "template": rows[0] if chosen and rows else None,
        "chosen": chosen,
        "whole_mb": BYTES_PER_MB,
        "typed": visit.form if problem is not None else {},
        "wanted": visit.query,
    }
    return visit.draw("new_plan.html", facts, problem=problem)


async def post_new_plan(visit: ConsoleRequest) -> Response:
    """Puts a plan into the shop, and takes the place of none that is there."""
    id, slug = visit.request.path_params["shop"], visit.form.get("slug", "")
    now = await visit.read("get_storefront", id=id)
    if now.problem is not None:
        return visit.draw("refused.html", {}, problem=now.problem)
    wanted = {"slug": slug, **terms_typed(visit), **sale_typed(visit)}
    there = next((plan for plan in plans_in(now.body) if plan["slug"] == slug), None)
    if there is not None and differing(wanted, there):
        return await show_new_plan(visit, PageProblem(409, visit.say("shops.plan_is_there"), visit.say("shops.plan_is_there_hint"), "slug"))
    outcome = await visit.press("upsert_storefront_plan", {"id": id, **wanted}) if there is None else now
    if outcome.problem is not None:
        return await show_new_plan(visit, plan_problem(visit, outcome.problem))
    return visit.go(f"/shops/{id}/plans/{slug}?done=put")


def plans_in(shop: Fields) -> list[ShownPlan]:
    return cast(WholeStorefront, shop)["plans"]


def differing(wanted: Fields, now: Fields) -> Fields:
    """What is wanted otherwise than it is now."""
    return {name: value for name, value in wanted.items() if value != now[name]}


def sale_typed(visit: ConsoleRequest) -> Mapping[str, object]:
    """Price, place and whether buyers see it, as they were typed."""
    return {
        "price_cents": typed_cents(visit.form.get("price_cents", "")),
        "on_sale": "on_sale" in visit.form,
        "position": typed_whole(visit.form.get("position", "") or "0"),
    }


def terms_typed(visit: ConsoleRequest) -> Mapping[str, object]:
    """What the plan promises and is drawn from, as it was typed."""
    numbers = {name: typed_whole(visit.form.get(name, "")) for name in ("data_mb", "validity_days", "package_template_id")}
    countries = typed_countries(visit.form.get("countries", ""))
    return {"name": visit.form.get("name", ""), "countries": countries, "adapt": "adapt" in visit.form, **numbers}


def plan_problem(visit: ConsoleRequest, problem: PageProblem) -> PageProblem:
    """The problem in the page's words where a person types otherwise than a program does."""
    field = problem.field.partition(".")[0]
    if field == "price_cents":
        return replace(problem, text=visit.say("shops.bad_price"), hint=visit.say("shops.bad_price_hint"), field=field)
    return replace(problem, field=field)


async def show_shop_plan(visit: ConsoleRequest, problem: PageProblem | None = None) -> Response:
    """What does this plan promise, what does its template give, and what does it earn?"""
    params = visit.request.path_params
    named = {"id": params["shop"], "slug": params["plan"]}
    found = await visit.read_together(shop=PageRead("get_storefront", {"id": params["shop"]}), plan=PageRead("get_storefront_plan", named))
    shop, asked = found["shop"], found["plan"]
    if shop.problem is not None:
        return visit.draw("refused.html", {}, problem=shop.problem)
    if asked.problem is not None:
        return visit.draw(
            "refused.html", {}, problem=PageProblem(404, visit.say("shops.no_such_plan"), visit.say("shops.no_such_plan_hint"))
        )
    plan = cast(ShownPlan, asked.body)
    number = plan["package_template_id"]
    templates = await visit.read("list_package_templates", templateId=number, fields=TEMPLATE_FIELDS)
    facts: Mapping[str, object] = {
        "shop": shop.body,
        "check": check_plan(plan, templates_by_number(templates)),
        "templates": templates,
        "price": written_cents(visit.texts, plan["price_cents"]),
        "version": asked.version,
        "done": done_text(visit),
        "typed": visit.form if problem is not None else {},
        "do": visit.form.get("do", ""),
    }
    return visit.draw("plan.html", facts, problem=problem)


async def post_shop_plan(visit: ConsoleRequest) -> Response:
    """Changes how the plan is sold, or replaces what it promises; what the form does not show stays."""
    params, do = visit.request.path_params, visit.form.get("do", "")
    if do not in ("sale", "terms"):
        raise unknown_form()
    named = {"id": params["shop"], "slug": params["plan"]}
    now = await visit.read("get_storefront_plan", **named)
    if now.problem is not None:
        return await show_shop_plan(visit)
    plan = now.body
    wanted = sale_typed(visit) if do == "sale" else terms_typed(visit)
    changes = differing(wanted, plan)
    if not changes:
        outcome = now
    elif do == "sale":
        outcome = await visit.press("update_storefront_plan", {**named, **changes})
    else:
        outcome = await visit.press("upsert_storefront_plan", {**named, **unshown_terms(plan), **wanted})
    if outcome.problem is not None:
        return await show_shop_plan(visit, plan_problem(visit, outcome.problem))
    return visit.go(f"/shops/{params['shop']}/plans/{params['plan']}?done=changed")


def unshown_terms(plan: Fields) -> Mapping[str, object]:
    """What a plan keeps when its promise is replaced."""
    names = ("price_cents", "on_sale", "position", "product_id", "account_id", "payments_price_id", "payments_price_mode")
    return {name: plan[name] for name in names if plan[name] is not None}


OWN_SHOP_ROUTES: Mapping[str, PageRoute[ConsoleRequest]] = {
    "/shops": PageRoute(show_shops, post_shops),
    "/shops/{shop}": PageRoute(show_own_shop, post_own_shop),
    "/shops/{shop}/preview": PageRoute(show_preview),
    "/shops/{shop}/plans": PageRoute(show_new_plan, post_new_plan),
    "/shops/{shop}/plans/{plan}": PageRoute(show_shop_plan, post_shop_plan),
}
