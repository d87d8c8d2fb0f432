"""The console, as somebody before a browser sees it."""
