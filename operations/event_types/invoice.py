"""Events of invoices."""
