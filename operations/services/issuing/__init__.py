"""Drawing eSIMs, once per key for ever, and settling what nobody knows."""
