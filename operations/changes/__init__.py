"""Many lines, one decision: tags, change sets, and what a person has to approve."""
