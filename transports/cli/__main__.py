"""`python -m transports.cli` is `reseller`."""

from transports.cli.main import main

main()
