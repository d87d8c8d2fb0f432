"""Docstrings as HTML: Markdown without raw HTML and pictures; the id of an operation becomes a link to its page."""

import re
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from markdown_it.token import Token
    from markupsafe import Markup

WORD = re.compile(r"\w+", re.ASCII)


def make_prose(addresses: Mapping[str, str]) -> "tuple[Callable[[str], Markup], Callable[[str], Markup]]":
    """The two filters of the templates: whole paragraphs, and text that stands inside a line."""
    from markdown_it import MarkdownIt  # imported on first use: serving the API needs neither
    from markupsafe import Markup

    markdown = MarkdownIt("commonmark", {"html": False}).disable(["image", "link", "autolink"])

    def linked(found: re.Match[str]) -> str:
        address = addresses.get(found.group())
        return found.group() if address is None else f'<a href="{address}">{found.group()}</a>'

    def text(self: object, tokens: "Sequence[Token]", index: int, options: object, environment: object) -> str:
        del self, options, environment
        return WORD.sub(linked, escape(tokens[index].content))

    def code(self: object, tokens: "Sequence[Token]", index: int, options: object, environment: object) -> str:
        del self, options, environment
        return f"<code>{WORD.sub(linked, escape(tokens[index].content))}</code>"

    markdown.add_render_rule("text", text)
    markdown.add_render_rule("code_inline", code)

    def prose(words: str) -> Markup:
        return Markup(markdown.render(words))

    def inline(words: str) -> Markup:
        return Markup(markdown.renderInline(words))

    return prose, inline
