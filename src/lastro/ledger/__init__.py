"""The double-entry ledger: it knows accounts, movements and entries, and never hears of payouts or charges."""
