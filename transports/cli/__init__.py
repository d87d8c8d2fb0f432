"""The command line: `reseller`."""
