"""Numbers and names of the simulated network, and of time, that many tests speak of."""

RESELLER = 7001
ACCOUNT = 8101
SIBLING = 8102
"""Two accounts of one reseller."""
TEMPLATE = 55010
NORDIC_5GB = 55011
ICCID = "8988303000000912345"
OWN_TOKEN = "sandbox-7001-token"
FOREIGN_TOKEN = "sandbox-7002-token"
"""Of the reseller whose accounts these are, and of another one."""
DRAW = "affectPackageToSubscriber"
DELETE = "deleteSubscriberPackage"
CHANGE = "changeSimStatus"
MINUTE = 60
HOUR = 3600
MIB = 1 << 20
INTERNAL = "internal-key-of-the-bridge"
