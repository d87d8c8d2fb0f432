"""Keys, onboarding and affiliates (api.md 4.9)."""
