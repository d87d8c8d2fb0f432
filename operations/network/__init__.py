"""Networks, zones, lists, templates and tariffs of the reseller (api.md 4.3)."""
