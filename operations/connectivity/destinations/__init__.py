"""Which events there are, and who is told of them: endpoints, test sends, deliveries, mail, alerts."""
