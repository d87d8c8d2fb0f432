"""Events of payments: refunds, disputes, payouts and the payment account."""
