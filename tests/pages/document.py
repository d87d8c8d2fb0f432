"""A page as a browser reads it: its forms with what they send, its text, and what it would load."""

from dataclasses import dataclass, field, replace
from functools import cached_property
from html.parser import HTMLParser

VOID = frozenset({"meta", "input", "path", "br", "link", "img", "hr"})


@dataclass
class Form:
    """A form: `fields` are what is sent when nothing is typed, `buttons` what each button adds."""

    action: str
    method: str
    fields: dict[str, str] = field(default_factory=dict[str, str])
    boxes: set[str] = field(default_factory=set[str])
    choices: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    buttons: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Label, name and value."""


@dataclass
class Tag:
    name: str
    attributes: dict[str, str]


class Document(HTMLParser):
    """Everything of a page that a test looks at."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.html = html
        self.forms: list[Form] = []
        self.tags: list[Tag] = []
        self.words: list[str] = []
        self._form: Form | None = None
        self._select = ""
        self._button: tuple[str, str] | None = None
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == [], f"not closed: {self._open}"

    @cached_property
    def text(self) -> str:
        """The words of the page, the style sheet left out."""
        return " ".join(" ".join(self.words).split())

    def form(self, action: str, do: str | None = None, **named: str) -> Form:
        """The one form that goes there, does that, and is about what is named; what is typed into it, no other one has."""
        wanted = named if do is None else named | {"do": do}
        found = [form for form in self.forms if form.action.endswith(action) and wanted.items() <= form.fields.items()]
        assert len(found) == 1, f"{len(found)} forms to {action} with {wanted}"
        return replace(found[0], fields=dict(found[0].fields))

    def wrong(self, name: str) -> str | None:
        """What is said beside a field, as it is bound to it."""
        field = next((tag for tag in self.tags if tag.attributes.get("id") == name), None)
        if field is None or field.attributes.get("aria-invalid") != "true":
            return None
        start = self.html.index(f'id="{field.attributes["aria-describedby"]}"')
        return Document(self.html[self.html.rindex("<", 0, start) : self.html.index("</p>", start) + 4]).text

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.tags.append(Tag(tag, attributes))
        if tag not in VOID:
            self._open.append(tag)
        name, value = attributes.get("name", ""), attributes.get("value", "")
        if tag == "form":
            self._form = Form(attributes["action"], attributes["method"])
            self.forms.append(self._form)
        elif self._form is None:
            return
        elif tag == "input" and attributes["type"] == "checkbox":
            self._form.boxes.add(name)
            if "checked" in attributes:
                self._form.fields[name] = value
        elif tag == "input":
            self._form.fields[name] = value
        elif tag == "select":
            self._select = name
            self._form.choices[name] = []
        elif tag == "option":
            self._form.choices[self._select].append(value)
            if "selected" in attributes or self._select not in self._form.fields:
                self._form.fields[self._select] = value
        elif tag == "button":
            self._button = (name, value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID, f"<{tag}/> is not closed by its slash"
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self._open and self._open[-1] == tag, f"</{tag}> closes <{self._open[-1:]}>"
        self._open.pop()
        if tag == "form":
            self._form = None

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "style":
            return
        self.words.append(data)
        if self._button is not None and self._form is not None:
            self._form.buttons.append((data, *self._button))
            self._button = None
