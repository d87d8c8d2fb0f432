"""What is kept of calls: claims, confirmations, quota, the audit log, and who works on them."""
