"""The credentials of the simulation. They open nothing else, so they are no secrets."""

from clients.sandbox.ocs.entities import Token

TOKENS = (Token("sandbox-7001-token", 7001), Token("sandbox-7002-token", 7002))
