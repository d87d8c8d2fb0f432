"""Call records, invoices and what an organisation bills."""
