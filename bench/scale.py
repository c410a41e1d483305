"""How much is measured: the whole benchmark, or a quick look that shows the same rows with less weight."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Counts and times of a run; everything is bounded by them."""

    quick: bool
    rounds: int
    write_s: float  # one side of one round of writes
    read_s: float  # one side of one round of reads
    warm_s: float
    accounts: int
    small_rows: int
    large_rows: int
    endpoints: int
    events_each: int
    memory_payouts: int
    tune_baselines: bool


FULL = Scale(
    quick=False, rounds=3, write_s=10, read_s=4, warm_s=3, accounts=1_000, small_rows=10_000,
    large_rows=1_000_000, endpoints=100, events_each=100, memory_payouts=100_000, tune_baselines=True,
)  # fmt: skip

QUICK = Scale(
    quick=True, rounds=1, write_s=2, read_s=1, warm_s=1, accounts=100, small_rows=2_000,
    large_rows=50_000, endpoints=100, events_each=30, memory_payouts=3_000, tune_baselines=False,
)  # fmt: skip
