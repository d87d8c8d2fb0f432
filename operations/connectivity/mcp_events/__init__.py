"""What MCP clients are told of, as the draft MCP Events has it."""
