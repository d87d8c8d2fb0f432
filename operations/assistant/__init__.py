"""A language model that looks things up: chat, insights, and how often it may be asked."""
