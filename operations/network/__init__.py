"""Networks, zones, lists, templates and tariffs of the reseller."""
