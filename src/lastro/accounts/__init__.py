"""Pix accounts: what an operator sets, and the Pix keys that lead to them."""
