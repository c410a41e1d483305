"""Two payout services as most teams would write them, on the same rows; see bench/README.md."""
