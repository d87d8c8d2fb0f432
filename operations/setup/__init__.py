"""Keys, onboarding and affiliates."""
