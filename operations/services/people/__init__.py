"""People, their organisations, credentials and mails."""
