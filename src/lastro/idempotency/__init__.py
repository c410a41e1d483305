"""Idempotency: one key, one effect, one answer."""
