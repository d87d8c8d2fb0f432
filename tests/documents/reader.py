"""Reading documents as programs that know nothing of the service do."""

from html.parser import HTMLParser
from typing import Any

import pypdfium2


class Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[str] = []
        self.cells: list[list[str]] = []
        self.words: list[str] = []
        self._in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        self.attributes += [name for name, _ in attrs]
        if tag == "tr":
            self.cells.append([])
        self._in_cell = tag == "td"
        if self._in_cell:
            self.cells[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self._in_cell = self._in_cell and tag != "td"

    def handle_data(self, data: str) -> None:
        self.words.append(data)
        if self._in_cell:
            self.cells[-1][-1] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def pages_of(content: bytes) -> list[str]:
    document: Any = pypdfium2.PdfDocument(content)
    try:
        return [" ".join(page.get_textpage().get_text_range().split()) for page in document]
    finally:
        document.close()


def ink(content: bytes, page: int) -> float:
    """How much of a page is not white, once it is drawn."""
    document: Any = pypdfium2.PdfDocument(content)
    try:
        drawn = document[page].render(scale=0.5, grayscale=True).to_pil()
        histogram = drawn.histogram()
        return 1 - sum(histogram[250:]) / sum(histogram)
    finally:
        document.close()
