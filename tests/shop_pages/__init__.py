"""The hosted shop as buyers use it: its pages, its texts, its colours."""
