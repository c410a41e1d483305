"""What `lastro check` proves besides the ledger itself: the features' own rows fit it."""

from lastro.ledger.check import ExtraCheck

EXTRA_CHECKS: list[ExtraCheck] = []
