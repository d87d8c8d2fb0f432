"""Prompts: tasks a person picks from a menu, told in the words of the tools."""

from typing import NamedTuple

from mcp.server.context import ServerRequestContext as McpContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    TextContent,
)

from transports.mcp.tools import refuse_cursor

LONGEST_PROMPT_ARGUMENT = 200


class PromptTask(NamedTuple):
    """A prompt: its text holds its arguments in braces; an argument that is not given is replaced by its default."""

    prompt: Prompt
    text: str
    defaults: dict[str, str]


def prompt_argument(name: str, description: str, *, required: bool = True) -> PromptArgument:
    return PromptArgument(name=name, description=description, required=required)


PROMPT_TASKS = {
    task.prompt.name: task
    for task in (
        PromptTask(
            Prompt(
                name="issue_esim",
                title="Issue an eSIM",
                description="Choose a plan, issue an eSIM from it and hand over the activation code.",
                arguments=[
                    prompt_argument(
                        "plan", "Plan id or slug, e.g. test_eu_1gb, which is free; absent: choose one together.", required=False
                    )
                ],
            ),
            "Issue an eSIM. The plan: {plan}. First look the plans up with list_connectivity_plans, and take none that it does not list; "
            "test_global_1gb and test_eu_1gb are free and for trying out. Tell me the plan, its data volume, validity and price, and wait "
            "for my yes before you call create_connectivity_intent with a fresh idempotency_key; if the call fails or its outcome is "
            "unclear, repeat it with the same key. Afterwards tell me the status and, if it succeeded, the activation code.",
            {"plan": "not chosen yet; ask me where and how long the eSIM is needed"},
        ),
        PromptTask(
            Prompt(
                name="investigate_intent",
                title="Investigate an intent",
                description="Find out what happened to one eSIM order and what to do next.",
                arguments=[prompt_argument("intent", "Intent id, e.g. cni_01k0a8w7zv6q4k3m2n1p0r9s8t.")],
            ),
            "Find out what happened to the intent {intent}. Read it with get_connectivity_intent, its usage with "
            "list_connectivity_usage_records and its events with list_connectivity_events. Tell me in plain words its status, what "
            "the last event was and when, how much data is used, what went wrong, if anything, and what to do next. Change nothing.",
            {},
        ),
        PromptTask(
            Prompt(
                name="choose_plan",
                title="Choose a plan",
                description="Compare the plans for a trip and recommend one.",
                arguments=[
                    prompt_argument("country", "Country of the trip, e.g. Norway or NO."),
                    prompt_argument("days", "Length of the trip in days, e.g. 10."),
                ],
            ),
            "Recommend a plan for {days} days in {country}. Read the plans with list_connectivity_plans, keep those that cover the country "
            "and are valid long enough, compare data volume, validity and price in a short table, and recommend one with a reason. "
            "Issue nothing.",
            {},
        ),
        PromptTask(
            Prompt(
                name="why_no_data",
                title="Why a line has no data",
                description="Find out why a line has no mobile data, and what would mend it.",
                arguments=[prompt_argument("iccid", "The line's SIM number, e.g. 8988303700000100286.")],
            ),
            "Find out why the line {iccid} has no mobile data. Look at these in order: "
            "1. get_subscriber: currentStatus must be Active, allowedData true. "
            "2. get_sim_provider_status: the first status must be Enable. "
            "3. list_subscriber_packages: one package must be running or assigned, with useddatabyte below pckdatabyte. "
            "4. list_location_zones with that package's locationzoneid as zoneId, page by page: a network's mccMncs must hold lastMcc and "
            "lastMnc of the line's networkInfo. "
            "5. Where no package covers that network, the balance must be above 0: the line's, or with useAccountForCharging its "
            "account's in list_reseller_accounts, unless that is packageOnly. "
            "6. hlr_get_bitrate: the limit must not be a few kbit/s. "
            "7. subscriber_network_events: there must be registrations (mapAnswer, s6aAnswer) and sessions (gyAnswer); a code other than "
            "2001 is a refusal. "
            "Tell me in plain words the first thing that is wrong, what shows it and which tool would mend it; if nothing is, that the "
            "device's APN and data roaming are to be checked. Change nothing.",
            {},
        ),
    )
}


async def list_prompts(ctx: McpContext, params: PaginatedRequestParams | None) -> ListPromptsResult:
    del ctx
    refuse_cursor(params)
    return ListPromptsResult(prompts=[task.prompt for task in PROMPT_TASKS.values()])


async def get_prompt(ctx: McpContext, params: GetPromptRequestParams) -> GetPromptResult:
    del ctx
    task = PROMPT_TASKS.get(params.name)
    if task is None:
        raise MCPError(INVALID_PARAMS, f"Unknown prompt {params.name[:80]!r}; known are {', '.join(PROMPT_TASKS)}")
    text = task.text.format_map(prompt_values(task, params.arguments or {}))
    message = PromptMessage(role="user", content=TextContent(type="text", text=text))
    return GetPromptResult(description=task.prompt.description, messages=[message])


def prompt_values(task: PromptTask, given: dict[str, str]) -> dict[str, str]:
    """The arguments, checked: nothing unknown, nothing missing, nothing long."""
    known = [argument.name for argument in task.prompt.arguments or []]
    unknown = sorted(set(given) - set(known))
    missing = [name for name in known if not given.get(name) and name not in task.defaults]
    if unknown or missing:
        wrong = f"{unknown[0][:80]}: unknown argument" if unknown else f"{missing[0]}: missing; it is required"
        raise MCPError(INVALID_PARAMS, f"{wrong}. {task.prompt.name} takes {', '.join(known)}")
    long = [name for name, value in given.items() if len(value) > LONGEST_PROMPT_ARGUMENT]
    if long:
        raise MCPError(INVALID_PARAMS, f"{long[0]}: must be at most {LONGEST_PROMPT_ARGUMENT} characters; got {len(given[long[0]])}")
    return {**task.defaults, **{name: value for name, value in given.items() if value}}
