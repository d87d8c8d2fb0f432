"""Call records, invoices and what an organisation bills (api.md 4.4)."""
