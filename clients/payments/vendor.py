"""The vendor's library, quiet. It is slow to import, so this file is imported when the processor is first asked."""

import logging
from contextlib import redirect_stderr
from importlib import import_module
from io import StringIO

with redirect_stderr(StringIO()):  # in some environments the import writes a line of its own there
    import stripe

stripe.enable_telemetry = False  # otherwise it keeps a file about this machine and tells its name
vars(import_module("stripe._util"))["STRIPE_LOG"] = None  # a variable that would print every body, secrets included, to stderr
LOG = logging.getLogger("stripe")
LOG.setLevel(logging.WARNING)
LOG.addFilter(lambda record: record.levelno >= logging.WARNING)  # below that it logs addresses and bodies
