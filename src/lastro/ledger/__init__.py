"""The double-entry ledger: it knows accounts, movements, entries, and never hears of payouts or charges."""
