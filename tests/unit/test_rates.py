"""The call allowance: never more than N in any 60 s, and honest words about when to come back."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastro.limits.rates import (
    SECOND_NS,
    UNLIMITED,
    WINDOW_NS,
    Allowance,
    FailureThrottle,
    MemoryRates,
    effective_limit,
)

EPOCH_NS = 1_790_000_000 * SECOND_NS


class Hands:
    """A clock that only the test moves."""

    def __init__(self, epoch_ns: int = EPOCH_NS) -> None:
        self.ns = 5
        self.epoch_ns = epoch_ns

    def now(self) -> int:
        return self.ns

    def wall(self) -> int:
        return self.epoch_ns + self.ns

    def wait_s(self, seconds: float) -> None:
        self.ns += int(seconds * SECOND_NS)


def counted(hands: Hands, **more: int) -> MemoryRates:
    return MemoryRates(now_ns=hands.now, wall_ns=hands.wall, **more)


@pytest.mark.parametrize(
    ("per_minute", "multiplier", "limit"),
    [
        (300, 1, 300),
        (300, 0.07, 21),
        (300, Decimal("0.07"), 21),
        (100, 0.29, 29),
        (100, 1.1, 110),
        (60, 0.01, 1),
        (30, 0.5, 15),
        (15, 0.5, 7),
        (10, 0.999, 9),
        (600, 100, 60_000),
        (300, 0, UNLIMITED),
        (300, 0.0, UNLIMITED),
        (300, Decimal("0.00"), UNLIMITED),
    ],
)
def test_effective_limit_is_the_exact_floor(per_minute, multiplier, limit):
    assert effective_limit(per_minute, multiplier) == limit


@pytest.mark.parametrize("multiplier", [-1, Decimal("-0.01"), float("nan"), float("inf")])
def test_a_multiplier_that_is_no_amount_is_refused(multiplier):
    with pytest.raises(ValueError, match="multiplier"):
        effective_limit(300, multiplier)


def test_the_calls_count_down_and_the_last_one_says_when_the_next_is_due():
    hands = Hands()
    rates = counted(hands)
    first = rates.take_now("account", "GET /v1/x", 2)
    assert first == Allowance(2, 1, EPOCH_NS // SECOND_NS, 0, True)
    hands.wait_s(10.5)
    second = rates.take_now("account", "GET /v1/x", 2)
    assert second == Allowance(2, 0, EPOCH_NS // SECOND_NS + 61, 50, True)
    hands.wait_s(1)
    third = rates.take_now("account", "GET /v1/x", 2)
    assert third == Allowance(2, 0, EPOCH_NS // SECOND_NS + 61, 49, False)


def test_a_refused_call_is_not_counted():
    hands = Hands()
    rates = counted(hands)
    rates.take_now("a", "r", 1)
    for _ in range(59):
        hands.wait_s(1)
        assert not rates.take_now("a", "r", 1).allowed
    hands.wait_s(1)
    assert rates.take_now("a", "r", 1).allowed


def test_subjects_and_labels_have_windows_of_their_own():
    rates = counted(Hands())
    assert rates.take_now("a", "r", 1).allowed
    assert not rates.take_now("a", "r", 1).allowed
    assert rates.take_now("b", "r", 1).allowed
    assert rates.take_now("a", "s", 1).allowed


def test_the_60th_second_still_counts_and_the_next_instant_does_not():
    hands = Hands()
    rates = counted(hands)
    rates.take_now("a", "r", 1)
    hands.ns += WINDOW_NS - 1
    assert not rates.take_now("a", "r", 1).allowed
    hands.ns += 1
    assert rates.take_now("a", "r", 1).allowed


def test_a_lowered_limit_counts_the_calls_already_made():
    hands = Hands()
    rates = counted(hands)
    for _ in range(5):
        rates.take_now("a", "r", 5)
        hands.wait_s(2)
    refused = rates.take_now("a", "r", 2)
    # Made at 0, 2, 4, 6, 8 s; it is 10 s now. With a limit of 2 the fourth must leave first: at 66 s.
    assert (refused.allowed, refused.retry_after_s) == (False, 56)
    assert rates.take_now("a", "r", 7).remaining == 1


def test_no_limit_counts_nothing():
    rates = counted(Hands())
    allowance = rates.take_now("a", "r", UNLIMITED)
    assert (allowance.limit, allowance.remaining, allowance.retry_after_s) == (UNLIMITED, UNLIMITED, 0)
    assert rates.peek_now("a", "r", UNLIMITED).remaining == UNLIMITED
    assert len(rates) == 0


def test_a_limit_below_one_is_a_programming_error():
    with pytest.raises(ValueError, match="at least 1"):
        counted(Hands()).take_now("a", "r", 0)


async def test_peek_counts_nothing_and_agrees_with_take():
    hands = Hands()
    rates = counted(hands)
    assert (await rates.peek("a", "r", 1)).remaining == 1
    assert len(rates) == 0
    taken = await rates.take("a", "r", 1)
    peeked = await rates.peek("a", "r", 1)
    assert (taken.allowed, peeked.allowed) == (True, False)
    assert (peeked.remaining, peeked.retry_after_s) == (0, 60)
    hands.wait_s(60)
    assert (await rates.peek("a", "r", 1)).allowed


def test_windows_that_nobody_uses_are_dropped():
    hands = Hands()
    rates = counted(hands)
    for number in range(1000):
        rates.take_now(f"subject-{number}", "r", 3)
    for number in range(3):
        hands.wait_s(61)
        rates.take_now(f"late-{number}", "r", 3)
    assert len(rates) <= 2


def test_a_flood_of_subjects_is_bounded_and_does_not_reset_a_busy_one():
    rates = counted(Hands(), keys_max=100)
    allowed = 0
    for number in range(5000):
        rates.take_now(f"flood-{number}", "r", 3)
        allowed += rates.take_now("busy", "r", 3).allowed
        assert len(rates) <= 201
    assert allowed == 3


@given(
    limit=st.integers(1, 6),
    steps_ns=st.lists(
        st.one_of(
            st.integers(0, 3),
            st.integers(0, 20 * SECOND_NS),
            st.sampled_from([WINDOW_NS - 1, WINDOW_NS, WINDOW_NS + 1, 3 * WINDOW_NS]),
        ),
        max_size=120,
    ),
)
def test_never_more_than_n_in_any_60_seconds(limit, steps_ns):
    hands = Hands()
    rates = counted(hands)
    allowed_ns: list[int] = []
    for step in steps_ns:
        hands.ns += step
        expected = sum(at > hands.ns - WINDOW_NS for at in allowed_ns) < limit
        assert rates.peek_now("a", "r", limit).allowed is expected
        assert rates.take_now("a", "r", limit).allowed is expected
        if expected:
            allowed_ns.append(hands.ns)
    spans = zip(allowed_ns, allowed_ns[limit:], strict=False)
    assert all(later - earlier >= WINDOW_NS for earlier, later in spans)


@given(
    calls=st.lists(st.tuples(st.integers(0, 30 * SECOND_NS), st.integers(1, 6)), min_size=1, max_size=60),
    epoch_ns=st.integers(10**18, 2 * 10**18),
)
def test_who_waits_as_told_is_served(calls, epoch_ns):
    """Both Retry-After and Reset are real: neither lets a caller come too early, whatever the limits were."""
    hands = Hands(epoch_ns)
    rates = counted(hands)
    for step, limit in calls:
        hands.ns += step
        told = rates.take_now("a", "r", limit)
        assert (told.retry_after_s == 0) is (told.remaining > 0)
        start_ns = hands.ns
        if told.retry_after_s:
            hands.ns = start_ns + (told.retry_after_s - 1) * SECOND_NS
            assert not rates.peek_now("a", "r", limit).allowed
        hands.ns = start_ns + told.retry_after_s * SECOND_NS
        assert rates.peek_now("a", "r", limit).allowed
        hands.ns = max(start_ns, told.reset_epoch_s * SECOND_NS - epoch_ns)
        assert rates.peek_now("a", "r", limit).allowed
        hands.ns = start_ns


async def test_failures_are_slowed_down_and_forgotten_after_a_minute():
    hands = Hands()
    throttle = FailureThrottle(counted(hands), label="login", limit=3)
    for _ in range(3):
        assert (await throttle.would_allow("document")).allowed
        assert (await throttle.record("document")).allowed
    assert not (await throttle.would_allow("document")).allowed
    assert not (await throttle.record("document")).allowed
    assert (await throttle.would_allow("another")).allowed
    hands.wait_s(60)
    assert (await throttle.would_allow("document")).allowed


async def test_a_forgiven_attempt_is_no_failure():
    throttle = FailureThrottle(counted(Hands()), label="login", limit=2)
    for _ in range(20):
        assert (await throttle.record("document")).allowed
        await throttle.forgive("document")
    await throttle.forgive("never seen")
    assert (await throttle.would_allow("document")).remaining == 2
