"""Where somebody goes after signing in: only to one of our own pages."""

import re

HOME = "/account"
PAGES = frozenset(
    {HOME, "/onboarding", "/api-keys", "/members", "/payments", "/affiliates", "/audit", "/session-token", "/upgrade", "/consent"}
    | {"/invitations"}
)
# No dots, colons, backslashes, escapes or second slashes: nothing that a browser could read as another host or another folder.
WORD = "[A-Za-z0-9_-]"
QUERY = rf"request={WORD}{{1,200}}|code={WORD}{{1,500}}&state={WORD}{{1,100}}|error={WORD}{{1,50}}"
OURS = re.compile(rf"/auth(/[a-z-]{{1,20}})(\?(?:{QUERY}))?", re.ASCII)
CARRIED = (("request",), ("code", "state"), ("error",))
"""What of a page's query is kept while somebody signs in: a program's request, or what the payment processor leads back with."""


def next_page(wanted: str) -> str:
    """The page below /auth that was wanted; the account's page instead of anything that is not plainly one of ours."""
    found = OURS.fullmatch(wanted)
    return found[1] + (found[2] or "") if found is not None and found[1] in PAGES else HOME
