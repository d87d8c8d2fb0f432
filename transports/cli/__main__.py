"""`python -m transports.cli` is `reseller`."""

import gc

# Start-up makes objects that live for ever: collecting meanwhile is a sixth of its time. `serve` switches the collector on again
# when it listens, `main` when a command begins.
gc.disable()

from transports.cli.main import main  # noqa: E402

main()
