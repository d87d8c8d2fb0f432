"""What stands out in the use of a line."""
