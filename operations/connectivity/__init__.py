"""Plans, products, intents, usage, events and webhook endpoints."""
