"""One invoice: its figures, its document, its way to who pays it."""
