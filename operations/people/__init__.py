"""How people sign in: mailed codes, browser sessions, consents, session tokens and the keys that sign them."""
