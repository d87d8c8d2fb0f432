"""Plans, products, intents, usage, events and webhook endpoints (api.md 4.1)."""
