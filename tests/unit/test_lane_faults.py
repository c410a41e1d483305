"""Which error of a batch has which cure."""

import asyncpg
import pytest

from lastro.kit.errors import NotFound
from lastro.store.lane_faults import Fault, classify
from lastro.store.lane_worker import BATCH_TIMEOUT_S, SUBMIT_TIMEOUT_S
from lastro.store.pool import LOCK_TIMEOUT_S

STATES = {
    "22001": Fault.POISON,
    "22021": Fault.POISON,
    "23505": Fault.POISON,
    "23514": Fault.POISON,
    "40001": Fault.RETRY,
    "40P01": Fault.RETRY,
    "0A000": Fault.RETRY,
    "55P03": Fault.LOCKED,
    "08006": Fault.LINK,
    "53100": Fault.LINK,
    "53300": Fault.LINK,
    "57014": Fault.LINK,
    "57P01": Fault.LINK,
    "57P03": Fault.LINK,
    "58030": Fault.LINK,
    "25P03": Fault.LINK,
    "28P01": Fault.LINK,
    "3D000": Fault.LINK,
    "40003": Fault.LINK,
    "25P02": Fault.BUG,
    "42601": Fault.BUG,
    "42P01": Fault.BUG,
    "XX000": Fault.BUG,
}


@pytest.mark.parametrize(("state", "fault"), STATES.items())
def test_the_server_s_errors_are_told_apart_by_their_state(state, fault):
    assert classify(asyncpg.PostgresError.new({"C": state, "M": "planted"})) is fault


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (ConnectionResetError(), Fault.LINK),
        (TimeoutError(), Fault.LINK),
        (asyncpg.ConnectionDoesNotExistError("gone"), Fault.LINK),
        (asyncpg.InterfaceError("connection is closed"), Fault.LINK),
        (asyncpg.exceptions._base.DataError("value out of int64 range"), Fault.POISON),
        (asyncpg.exceptions.DataError("value out of int64 range"), Fault.POISON),
        (asyncpg.exceptions._base.ProtocolError("what was that"), Fault.LINK),
        (asyncpg.exceptions._base.OutdatedSchemaCacheError("altered"), Fault.RETRY),
        (KeyError("an account that is not there"), Fault.POISON),
        (NotFound(), Fault.POISON),
    ],
    ids=lambda value: getattr(value, "value", type(value).__name__),
)
def test_errors_of_the_client_s_side_have_a_class_too(error, fault):
    assert classify(error) is fault


def test_a_wait_for_a_lock_is_told_apart_from_a_frozen_server_while_the_caller_still_waits():
    assert LOCK_TIMEOUT_S < BATCH_TIMEOUT_S
    assert BATCH_TIMEOUT_S + LOCK_TIMEOUT_S < SUBMIT_TIMEOUT_S
