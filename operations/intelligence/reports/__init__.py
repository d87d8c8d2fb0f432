"""Findings, and the reports that people read of them, and strangers may."""
