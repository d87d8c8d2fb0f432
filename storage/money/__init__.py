"""What is kept of call records, invoices, and the payment processor's word."""
