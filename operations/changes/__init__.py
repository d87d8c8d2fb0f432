"""Many lines, one decision: tags, and change sets that are planned, applied and undone."""
