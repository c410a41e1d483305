"""What `lastro check` proves besides the ledger itself: the features' own rows fit it."""

from lastro.charges.checks import CHECKS as CHARGES
from lastro.ledger.check import ExtraCheck
from lastro.payouts.checks import CHECKS as PAYOUTS

EXTRA_CHECKS: list[ExtraCheck] = [*CHARGES, *PAYOUTS]
