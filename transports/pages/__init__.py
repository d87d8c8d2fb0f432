"""The service's own pages: plain forms that work without script."""
