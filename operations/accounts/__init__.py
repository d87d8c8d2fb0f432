"""Accounts and their reseller: stock, balances, what is relayed, which lines belong where."""
