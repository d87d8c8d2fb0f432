"""The hosted shop: pages on which a buyer chooses a plan, pays for it elsewhere, and gets an eSIM."""
