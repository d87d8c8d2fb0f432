"""`python -m transports.cli` is `reseller`."""

import gc
import os

# Start-up makes objects that live for ever: collecting meanwhile is a sixth of its time. `serve` switches the collector on again
# when it listens, `main` when a command begins.
gc.disable()
# Nor are there plugins for pydantic: looking for them reads what every installed package says of itself.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from transports.cli.main import main  # noqa: E402

main()
