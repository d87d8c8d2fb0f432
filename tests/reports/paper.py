"""The page of a report as a browser reads it, drawings included."""

from html.parser import HTMLParser

VOID = frozenset({"meta"})
DRAWN = frozenset({"rect", "line", "path", "circle"})
ACTIVE = frozenset({"script", "iframe", "object", "embed", "link", "base", "form", "input", "button", "img", "image", "use"})
LOADING = frozenset({"src", "href", "xlink:href", "srcset", "data", "action", "poster", "background", "style"})


class Paper(HTMLParser):
    """Tags with their attributes, and the words, the style sheet left out. Everything that is opened is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())

    @property
    def suspicious(self) -> list[tuple[str, dict[str, str]]]:
        """What would run, load or send something."""
        return [
            (tag, attributes)
            for tag, attributes in self.tags
            if tag in ACTIVE or any(name in LOADING or name.startswith("on") for name in attributes)
        ]

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in DRAWN, f"<{tag}/> is not closed by its slash"
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1] == tag, f"</{tag}> closes {self._open[-1:]}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.words.append(data)
