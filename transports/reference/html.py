"""The reference as HTML: rendered here, no script, nothing loaded from elsewhere (security.md 3.9)."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from operations.services.page_policy import page_policy
from operations.services.page_templates import page_templates
from transports.openapi.document import INTERFACE_VERSION
from transports.reference.entry import Chapter, Entry, Reference
from transports.reference.prose import make_prose

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


class HtmlReference:
    """Renders pages; the templates are compiled when the first one is asked for."""

    def __init__(self, reference: Reference) -> None:
        self.reference = reference
        self._root = reference.site.path
        self._style = (TEMPLATES / "style.css").read_text()

    @property
    def policy(self) -> str:
        """The Content-Security-Policy: our own style sheet, by its hash, and nothing else."""
        return page_policy(self._style)

    @cached_property
    def _environment(self) -> "Environment":
        environment = page_templates(TEMPLATES)
        addresses = {
            one.operation.id: f"{self._root}/docs/{chapter.toolset.name}/{one.operation.id}"
            for chapter in self.reference.chapters
            for one in chapter.entries
        }
        environment.filters["prose"], environment.filters["inline"] = make_prose(addresses)
        return environment

    def index(self) -> str:
        """All toolsets."""
        return self._render("index.html")

    def toolset(self, chapter: Chapter) -> str:
        """One toolset."""
        return self._render("toolset.html", chapter)

    def operation(self, chapter: Chapter, entry: Entry) -> str:
        """One operation."""
        return self._render("operation.html", chapter, entry)

    def missing(self) -> str:
        """The page for an address that has none."""
        return self._render("missing.html")

    def _render(self, template: str, chapter: Chapter | None = None, entry: Entry | None = None) -> str:
        page = self._environment.get_template(template)
        given = {"style": self._style, "root": self._root, "version": INTERFACE_VERSION, "reference": self.reference}
        return page.render(**given, chapter=chapter, entry=entry)
