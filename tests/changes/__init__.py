"""Tests of tags."""
