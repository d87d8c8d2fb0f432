"""Where somebody goes after signing in: only to one of our own pages."""

import re

HOME = "/account"
PAGES = frozenset(
    {HOME, "/onboarding", "/api-keys", "/members", "/affiliates", "/audit", "/session-token", "/upgrade", "/consent", "/invitations"}
)
# No dots, colons, backslashes, escapes or second slashes: nothing that a browser could read as another host or another folder.
OURS = re.compile(r"/auth(/[a-z-]{1,20})(\?request=[A-Za-z0-9_-]{1,200})?", re.ASCII)


def next_page(wanted: str) -> str:
    """The page below /auth that was wanted; the account's page instead of anything that is not plainly one of ours."""
    found = OURS.fullmatch(wanted)
    return found[1] + (found[2] or "") if found is not None and found[1] in PAGES else HOME
