"""The wire's methods, one file per noun."""
