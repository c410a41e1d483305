"""Lastro: an instant-payment (Pix) account service."""

__version__ = "0.1.0"
