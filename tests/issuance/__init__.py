"""Drawing eSIMs from stock, and giving them back, through the doors."""
