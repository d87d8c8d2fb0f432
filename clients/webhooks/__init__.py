"""Signed deliveries to addresses that strangers choose."""
