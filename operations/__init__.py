"""What the service does: one package per part of the specification, one file per noun."""
