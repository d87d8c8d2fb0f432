"""The pages behind /auth: signing in, the account, the organisation."""
