"""What `serve` prints once it listens: a tree for people, or one line of JSON for programs."""

from dataclasses import dataclass
from typing import Literal

import orjson

from registry.ports import Site


@dataclass(frozen=True, slots=True)
class Started:
    """A server that listens."""

    site: Site
    database: str
    mode: Literal["demo", "production", "development"]
    organisation: str | None
    api_key: str | None
    pid: int
    tools: int
    upstream: str
    new_key: str
    """The command that makes another key, as it can be pasted."""
    payments: str = ""
    shop: str | None = None
    """Address of the demo's shop, where it has one."""

    def as_json(self) -> str:
        """One line; `api_key` is null when the key was made by an earlier start, since only its digest is kept."""
        return orjson.dumps(
            {
                "base_url": self.site.base_url,
                "mcp_url": self.site.mcp_url,
                "api_key": self.api_key,
                "org_id": self.organisation,
                "database": self.database,
                "upstream": self.upstream,
                "shop_url": self.shop,
                "mode": self.mode,
                "pid": self.pid,
            }
        ).decode()

    def as_tree(self) -> str:
        """Addresses, database, mode, key, and the two things to do first. People sign in with a browser, so only they are told where."""
        shown = f"{self.api_key}  (shown this once)" if self.api_key else f"made by an earlier start; a new one: {self.new_key}"
        mode = {
            "demo": "demo: an organisation to try things with, and no money moves",
            "development": "development",
            "production": "production",
        }[self.mode]
        branches = [
            ("API", self.site.base_url),
            ("MCP", f"{self.site.mcp_url}  ({self.tools} tools)"),
            ("Sign in", self.site.sign_in_url),
            *([("Shop", self.shop)] if self.shop else []),
            ("Docs", self.site.docs_url),
            ("OpenAPI", f"{self.site.base_url}/openapi.json"),
            ("Database", self.database),
            ("Upstream", self.upstream),
            *([("Payments", self.payments)] if self.payments else []),
            ("Mode", mode),
            ("Key", shown),
        ]
        lines = ["Connectivity reseller"]
        lines += [f"{'└' if last else '├'}─ {name:<9} {value}" for last, (name, value) in marked(branches)]
        return "\n".join(
            [
                *lines,
                "",
                "Issue a first test eSIM:",
                "",
                curl(self.site, self.api_key),
                "",
                "Or let an agent do it, over MCP:",
                "",
                mcp_block(self.site, self.api_key or "<API_KEY>"),
            ]
        )


def marked(branches: list[tuple[str, str]]) -> list[tuple[bool, tuple[str, str]]]:
    """Which branch is the last."""
    return [(index == len(branches) - 1, branch) for index, branch in enumerate(branches)]


def curl(site: Site, key: str | None) -> str:
    """A first eSIM by curl, ready to paste; a key that is not known is taken from the shell's environment."""
    header = f"'Authorization: Bearer {key}'" if key else '"Authorization: Bearer $RESELLER_API_KEY"'
    return (
        f"curl -s {site.base_url}/v1/connectivity/intents -H {header} "
        "-H 'Idempotency-Key: my-first-esim' -H 'Content-Type: application/json' -d '{\"plan\": \"test_global_1gb\"}'"
    )


def mcp_block(site: Site, key: str) -> str:
    """The configuration that MCP clients understand."""
    server = {"type": "http", "url": site.mcp_url, "headers": {"Authorization": f"Bearer {key}"}}
    return orjson.dumps({"mcpServers": {"connectivity": server}}, option=orjson.OPT_INDENT_2).decode()
