"""The simulated payment processor's pages, webhooks, control API, faults and file."""
