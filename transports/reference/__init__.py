"""The reference that people read: Markdown files and HTML pages, both from the catalogue."""
