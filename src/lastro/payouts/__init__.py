"""Payouts: send money by key or QR code, never twice, never late, whatever the provider answers."""
