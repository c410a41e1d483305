"""The rules of webhooks: what an answer means, when the next attempt comes, when none does."""

import itertools
from datetime import UTC, datetime, timedelta

import pytest
from standardwebhooks.webhooks import Webhook as StandardWebhook
from standardwebhooks.webhooks import WebhookVerificationError

from lastro.accounts.model import Account
from lastro.kit.errors import InvalidState, NotFound
from lastro.kit.signing import new_signing_secret
from lastro.outbox.model import DATA_OF, EventName, new_event
from lastro.webhooks.decide import (
    RETRY_AFTER_MAX_S,
    SCHEDULE_LIVE_S,
    SCHEDULE_SANDBOX_S,
    Amend,
    Gate,
    Remove,
    Rotate,
    after_attempt,
    change,
    check_sendable,
    headers_of,
    lease_after,
    outcome_of,
    pause_s,
    register,
    retry_after_s,
    width,
)
from lastro.webhooks.model import (
    FREE,
    PARKED,
    STEPS,
    Answered,
    DeliveryStatus,
    Endpoint,
    Fact,
    Lease,
    Outcome,
    Owed,
    Target,
    endpoint_of,
)
from lastro.webhooks.samples import sample

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
LEASE = Lease("cacc", "cend", "token", NOW, FREE, 0, False)
ENDPOINT = Endpoint(
    "cacc", "cend", "https://a.example/h", ["pix.charge.paid"], True,
    None, None, b"sealed", None, None, NOW, NOW, None,
)  # fmt: skip
ACCOUNT = Account(
    account_id="cacc", short_code="abcd1234", tenant_id=None, entity_id=None, core_account_id="uuid",
    branch="0001", account_number="1", label="x", enabled=True, status="APPROVED",
    pix_in_fee_cents=0, pix_in_fee_bps=0, pix_out_fee_cents=0, pix_out_fee_bps=0,
    limit_per_transaction_cents=0, limit_daily_cents=0, limit_night_cents=0, rate_multiplier=1,
    monthly_goal_cents=0, created_at=NOW, updated_at=NOW,
)  # fmt: skip


def answered(outcome=Outcome.REFUSED, *, step=0, status=500, wait_s=None) -> Answered:
    owed = Owed("cacc", "cend", "cdel", NOW, "evt_1", "pix.charge.paid", 0, step, NOW, b"{}")
    return Answered(owed, outcome, status, wait_s, None, 5, NOW)


def test_every_pair_of_status_and_fact_is_decided():
    assert set(STEPS) == set(itertools.product(DeliveryStatus, Fact))


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        *((status, Outcome.SUCCEEDED) for status in (200, 201, 204, 299)),
        *((status, Outcome.REDIRECTED) for status in (300, 301, 304, 308, 399)),
        *((status, Outcome.REFUSED) for status in (199, 400, 401, 404, 409, 411, 429, 500, 503)),
        (410, Outcome.GONE),
    ],
)  # fmt: skip
def test_only_2xx_is_success(status, outcome):
    assert outcome_of(status) is outcome


# --- the schedule ----------------------------------------------------------------------------------

LIVE = [0, 5, 15, 60, 300, 900, 1800, 3600, 7200, 14400, 28800, 43200, 72000, 86400]


def test_the_live_schedule_is_the_documented_one():
    assert list(SCHEDULE_LIVE_S) == LIVE


@pytest.mark.parametrize("spread", [-1, -0.5, 0, 0.5, 1])
@pytest.mark.parametrize("sandbox", [False, True])
def test_each_wait_is_the_tabled_one_give_or_take_a_fifth(sandbox, spread):
    schedule = [0, 1, 2, 5, 15, 60] if sandbox else LIVE
    for step in range(len(schedule) - 1):
        following = after_attempt(answered(step=step), sandbox=sandbox, spread=spread, now=NOW)
        expected_s = schedule[step + 1] * (1 + 0.2 * spread)
        assert (following.due_at - NOW).total_seconds() == pytest.approx(expected_s)
        assert (following.status, following.step) == (DeliveryStatus.PENDING, step + 1)


@pytest.mark.parametrize(("sandbox", "last"), [(False, 13), (True, 5)])
def test_after_the_last_attempt_a_delivery_is_parked(sandbox, last):
    assert last == len(SCHEDULE_SANDBOX_S if sandbox else SCHEDULE_LIVE_S) - 1
    following = after_attempt(answered(step=last), sandbox=sandbox, spread=0, now=NOW)
    assert following == (DeliveryStatus.EXHAUSTED, last, PARKED)


def test_success_leaves_nothing_due():
    following = after_attempt(answered(Outcome.SUCCEEDED, status=200), sandbox=False, spread=0, now=NOW)
    assert (following.status, following.due_at) == (DeliveryStatus.SUCCEEDED, None)


def test_a_receiver_that_is_gone_gets_no_further_attempt():
    following = after_attempt(answered(Outcome.GONE, status=410), sandbox=False, spread=0, now=NOW)
    assert (following.status, following.due_at) == (DeliveryStatus.EXHAUSTED, PARKED)


@pytest.mark.parametrize(("wait_s", "expected_s"), [(None, 5), (1, 5), (60, 60), (86_400, 86_400)])
def test_retry_after_delays_but_never_hastens(wait_s, expected_s):
    following = after_attempt(answered(wait_s=wait_s), sandbox=False, spread=0, now=NOW)
    assert following.due_at - NOW == timedelta(seconds=expected_s)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, None), ("", None), ("soon", None), ("-5", None), ("1.5", None), ("٣", None),
        ("0", 0), ("7", 7), (" 7 ", 7), ("86400", 86_400), ("86401", RETRY_AFTER_MAX_S),
        ("9" * 40, RETRY_AFTER_MAX_S), ("Wed, 01 Jul 2026 12:01:00 GMT", 60),
        ("Wed, 01 Jul 2026 12:01:00", 60), ("Wed, 01 Jul 2026 11:00:00 GMT", 0),
        ("Sat, 01 Jan 2050 00:00:00 GMT", RETRY_AFTER_MAX_S), ("Wed, 99 Jul 2026 12:01:00 GMT", None),
        ("Mon, 01 Jan 99999 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_retry_after_is_read_as_seconds_or_a_date_up_to_a_day(text, expected):
    assert retry_after_s(text, at=NOW) == expected


# --- the breaker -----------------------------------------------------------------------------------


def test_ten_failures_in_a_row_open_the_breaker_and_nine_do_not():
    lease = LEASE
    for count in range(1, 10):
        lease = lease_after(lease, answered(), sandbox=False, now=NOW)
        assert (lease.failures, lease.blocked_until) == (count, FREE)
    lease = lease_after(lease, answered(), sandbox=False, now=NOW)
    assert lease.blocked_until == NOW + timedelta(seconds=30)
    assert width(lease.failures) == 1


def test_a_success_between_failures_keeps_the_breaker_shut():
    lease = LEASE
    for number in range(40):
        outcome = Outcome.SUCCEEDED if number % 10 == 9 else Outcome.TIMED_OUT
        lease = lease_after(lease, answered(outcome), sandbox=False, now=NOW)
        assert lease.blocked_until == FREE
        assert width(lease.failures) == 8


def test_a_success_closes_an_open_breaker():
    opened = LEASE._replace(failures=25, blocked_until=NOW + timedelta(minutes=15))
    lease = lease_after(opened, answered(Outcome.SUCCEEDED, status=200), sandbox=False, now=NOW)
    assert (lease.failures, lease.blocked_until) == (0, FREE)


def test_a_late_success_does_not_switch_on_what_the_client_switched_off():
    off = LEASE._replace(blocked_until=PARKED)
    lease = lease_after(off, answered(Outcome.SUCCEEDED, status=200), sandbox=False, now=NOW)
    assert lease.blocked_until == PARKED


def test_pauses_double_up_to_their_bound():
    assert [pause_s(n, sandbox=False) for n in range(10, 17)] == [30, 60, 120, 240, 480, 900, 900]
    assert [pause_s(n, sandbox=True) for n in range(10, 15)] == [2, 4, 8, 15, 15]
    assert pause_s(10**6, sandbox=False) == 900


@pytest.mark.parametrize("status", [429, 503])
def test_an_overloaded_receiver_pauses_the_whole_endpoint(status):
    lease = lease_after(LEASE, answered(status=status, wait_s=90), sandbox=False, now=NOW)
    assert lease.blocked_until == NOW + timedelta(seconds=90)


def test_retry_after_of_another_status_delays_its_delivery_alone():
    assert lease_after(LEASE, answered(status=500, wait_s=90), sandbox=False, now=NOW).blocked_until == FREE


def test_a_receiver_that_is_gone_shuts_its_endpoint():
    lease = lease_after(LEASE, answered(Outcome.GONE, status=410), sandbox=False, now=NOW)
    assert lease.blocked_until == PARKED


# --- endpoints -------------------------------------------------------------------------------------


def test_the_twenty_first_endpoint_is_refused():
    assert register(ENDPOINT, 19).gate is Gate.OPEN
    with pytest.raises(InvalidState) as refused:
        register(ENDPOINT, 20)
    assert refused.value.details == {"limit": 20}


@pytest.mark.parametrize(
    ("deed", "gate"),
    [
        (Amend(None, None, None), Gate.KEEP),
        (Amend(None, ["pix.in.received"], None), Gate.KEEP),
        (Amend("https://b.example/h", None, None), Gate.OPEN),
        (Amend(None, None, True), Gate.OPEN),
        (Amend(None, None, False), Gate.SHUT),
        (Amend("https://b.example/h", None, False), Gate.SHUT),
        (Remove(), Gate.SHUT),
        (Rotate(b"new"), Gate.KEEP),
    ],
)
def test_a_change_says_what_it_means_for_sending(deed, gate):
    assert change(ENDPOINT, deed, now=NOW).gate is gate


def test_what_is_left_out_of_a_change_stays():
    later = NOW + timedelta(minutes=1)
    after = change(ENDPOINT, Amend(None, ["pix.in.received"], None), now=later).endpoint
    assert after == ENDPOINT._replace(events=["pix.in.received"], updated_at=later)


def test_a_disabled_endpoint_that_changes_its_url_stays_shut():
    off = ENDPOINT._replace(enabled=False)
    assert change(off, Amend("https://b.example/h", None, None), now=NOW).gate is Gate.SHUT


def test_a_removed_endpoint_is_not_found_and_takes_nothing():
    removed = change(ENDPOINT, Remove(), now=NOW).endpoint
    assert not removed.enabled
    for missing in (removed, None):
        with pytest.raises(NotFound):
            endpoint_of(missing)
    with pytest.raises(InvalidState):
        check_sendable(removed)


def test_the_old_secret_signs_along_for_a_day():
    after = change(ENDPOINT, Rotate(b"new"), now=NOW).endpoint
    assert (after.secret_sealed, after.old_secret_sealed) == (b"new", b"sealed")
    assert after.old_secret_until == NOW + timedelta(hours=24)


# --- what leaves -----------------------------------------------------------------------------------


def signed(*secrets: str, token: str | None = None) -> tuple[bytes, dict[str, str]]:
    event = new_event(
        "cacc",
        EventName.CHARGE_PAID,
        sample(EventName.CHARGE_PAID, ACCOUNT, ispb="99999999", now=NOW),
        now=NOW,
    )
    owed = Owed("cacc", "cend", "cdel", NOW, event.event_id, event.event, 0, 0, NOW, event.body)
    return event.body, headers_of(owed, Target("https://a.example", token, secrets), at=datetime.now(UTC))


def test_the_public_library_verifies_our_signature():
    secret = new_signing_secret()
    body, headers = signed(secret)
    assert StandardWebhook(secret).verify(body, headers)["event"] == "pix.charge.paid"
    with pytest.raises(WebhookVerificationError):
        StandardWebhook(secret).verify(body + b" ", headers)


def test_during_a_rotation_either_secret_verifies():
    new, old = new_signing_secret(), new_signing_secret()
    body, headers = signed(new, old)
    assert StandardWebhook(new).verify(body, headers) == StandardWebhook(old).verify(body, headers)
    with pytest.raises(WebhookVerificationError):
        StandardWebhook(new_signing_secret()).verify(body, headers)


def test_the_headers_are_the_contracts():
    _, headers = signed(new_signing_secret(), token="s3cret")
    assert headers["Authorization"] == "Bearer s3cret"
    assert headers["Content-Type"] == "application/json"
    assert headers["webhook-event-type"] == "pix.charge.paid"
    assert headers["webhook-id"].startswith("evt_")
    assert headers["User-Agent"].startswith("Lastro/")
    assert "Authorization" not in signed(new_signing_secret())[1]


@pytest.mark.parametrize("name", EventName)
def test_a_sample_has_exactly_the_tabled_fields(name):
    data = sample(name, ACCOUNT, ispb="99999999", now=NOW)
    assert type(data) is DATA_OF[name]
    values = {field: getattr(data, field) for field in data.__struct_fields__}
    absent = {field for field, value in values.items() if value is None}
    assert absent == {
        EventName.PAYOUT_CANCELLED: {"reason"}, EventName.CHARGE_PAID: {"refund_end_to_end_id"},
    }.get(name, set())  # fmt: skip
    assert all(isinstance(value, str) for field, value in values.items() if field not in absent)
