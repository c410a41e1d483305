"""What is counted of answers, as Prometheus reads it."""

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from lastro.api.metrics import BOUNDS_S, Answers


def told(answers: Answers) -> list[str]:
    registry = CollectorRegistry()
    registry.register(answers)
    return [line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#")]


def within(answers: Answers, route: str) -> list[float]:
    """The buckets of a route, from the lowest bound up."""
    lines = [line for line in told(answers) if line.startswith("lastro_request_seconds_bucket")]
    return [float(line.split()[1]) for line in lines if f'route="{route}"' in line]


def test_answers_are_counted_by_route_and_status():
    answers = Answers()
    for route, status in (("payouts", 201), ("payouts", 201), ("payouts", 422), ("charges", 201)):
        answers.count(route, status, 0.1)
    lines = told(answers)
    assert 'lastro_requests_total{route="payouts",status="201"} 2.0' in lines
    assert 'lastro_requests_total{route="payouts",status="422"} 1.0' in lines
    assert 'lastro_requests_total{route="charges",status="201"} 1.0' in lines


def test_a_bucket_holds_what_took_no_longer_than_its_bound():
    """Buckets add up, a bound belongs to its own bucket, and the last one holds everything."""
    answers = Answers()
    for seconds in (0.0, BOUNDS_S[0], BOUNDS_S[0] + 0.001, BOUNDS_S[-1], BOUNDS_S[-1] + 1):
        answers.count("payouts", 201, seconds)
    found = within(answers, "payouts")
    assert found[:2] == [2, 3]
    assert found[-2:] == [4, 5]
    assert found == sorted(found)
    assert len(found) == len(BOUNDS_S) + 1
    assert 'lastro_request_seconds_count{route="payouts"} 5.0' in told(answers)
    (total,) = [line for line in told(answers) if line.startswith("lastro_request_seconds_sum")]
    assert float(total.split()[1]) == pytest.approx(21.005)


def test_nothing_counted_is_nothing_told():
    assert told(Answers()) == []
