"""What `serve` prints once it listens: a tree for people, or one line of JSON for programs."""

from dataclasses import dataclass
from typing import Literal

import orjson

from registry.ports import Site

EVERYWHERE = ("0.0.0.0", "::")


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
    opened: str = ""
    """What a demo opens to other machines, where it listens for them."""

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

    @property
    def way_to_a_key(self) -> str:
        """How to get a key that no start shows: only the demo's organisation has been given one by the start that made it."""
        if self.organisation is not None:
            return f"made by an earlier start; a new one: {self.new_key}"
        return f"none is made without demo data; for an organisation (`reseller org create`): {self.new_key} --org ID"

    def as_tree(self) -> str:
        """Addresses, database, mode, key, and the two things to do first. People sign in with a browser, so only they are told where."""
        shown = f"{self.api_key}  (shown this once)" if self.api_key else self.way_to_a_key
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
            *([("Open", self.opened)] if self.opened else []),
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


def opened_by(host: str, demo: bool, base_url: str) -> str:
    """What a demo opens, and to whom, where it does not listen to this machine alone."""
    if not demo or is_loopback(host):
        return ""
    whom = "every machine that reaches this one" if host in EVERYWHERE else f"every machine that reaches {host}"
    plain = "" if base_url.startswith("https://") else ", unencrypted"
    return (
        f"to {whom}{plain}: the API and MCP to whoever has the key above, sign-up and sign-in to whoever reads the codes in this "
        "console's output, the demo shop and the simulated payment pages, which take any test card, to everybody. For this machine alone: "
        "--host 127.0.0.1"
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    return host in ("localhost", "::1") or (host.startswith("127.") and host.count(".") == 3)


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
