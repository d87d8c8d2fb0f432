"""The MCP door: tools, resources and prompts read from the catalogue."""
