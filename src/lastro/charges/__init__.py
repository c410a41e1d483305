"""Charges: receive money by QR code, in three variants, from creation to refund."""
