"""What operators do about open payouts and alarms, over the admin API and on the command line."""

import asyncio
import json
import subprocess
import sys

import asyncpg
import pytest

from tests.support.payouts import assert_sound, clocked_service, events_of, pay, record, until_status

ALARM = {"id", "pixAccountId", "kind", "subject", "detail", "createdAt", "resolvedAt", "resolution"}


@pytest.fixture(scope="module")
async def own():
    """The service whose clock may be moved."""
    service = clocked_service()
    yield service
    await service.close()


@pytest.fixture
async def payer(own):
    return await own.new_account(balance_cents=100_000, pixOutFeeCents="30")


async def stuck(service, account) -> str:
    sent = (await pay(service, account, "stuck")).body["payoutId"]
    await service.advance(25 * 3600)
    await until_status(service, account, sent, "STUCK")
    return sent


async def resolve(
    service, account, payout_id, outcome="settled", reason="the provider confirmed it by phone"
):
    body = {"pixAccountId": account.pix_account_id, "outcome": outcome, "reason": reason}
    return await service.admin("POST", f"/admin/v1/payouts/{payout_id}/resolve", body)


async def audit_of(service, subject) -> list[dict]:
    return (await service.admin("GET", f"/admin/v1/audit?subject={subject}")).body["audit"]


@pytest.mark.parametrize(
    ("outcome", "status", "event", "cents"),
    [
        ("settled", "SUCCEEDED", "pix.payout.succeeded", 99_870),
        ("failed", "FAILED", "pix.payout.failed", 100_000),
        ("cancelled", "CANCELLED", "pix.payout.cancelled", 100_000),
    ],
)
async def test_a_stuck_payout_is_decided_by_hand_with_a_reason(own, payer, outcome, status, event, cents):
    payout_id = await stuck(own, payer)
    reply = await resolve(own, payer, payout_id, outcome)
    assert (reply.status, reply.body["status"]) == (200, status)
    assert (await record(own, payer, payout_id))["status"] == status
    assert await own.balance(payer) == cents
    assert [told["event"] for told in await events_of(own, payer, payout_id)] == [event]
    (row,) = await audit_of(own, payout_id)
    assert (row["actor"], row["action"]) == ("admin", "payout.resolve")
    assert row["before"] == {"pixAccountId": payer.pix_account_id, "status": "STUCK"}
    assert row["after"] == {"status": status, "reason": "the provider confirmed it by phone"}
    again = await resolve(own, payer, payout_id, "failed")
    assert (again.status, again.code) == (409, "invalid_state"), "what is decided stays decided"
    assert len(await audit_of(own, payout_id)) == 1


async def test_a_payout_that_may_still_be_sent_is_left_alone(own, payer):
    sent = (await pay(own, payer, "lost")).body["payoutId"]
    reply = await resolve(own, payer, sent, "failed")
    assert (reply.status, reply.code) == (409, "invalid_state")
    assert (await record(own, payer, sent))["status"] == "SUBMITTED_UNKNOWN"
    await asyncio.sleep(5.2)
    assert (await resolve(own, payer, sent, "failed")).status == 200
    assert await own.balance(payer) == 100_000


@pytest.mark.parametrize(
    ("change", "param"),
    [({"reason": "x"}, "reason"), ({"outcome": "lost"}, "outcome"), ({"pixAccountId": "x"}, "pixAccountId")],
)
async def test_a_decision_without_its_parts_is_refused(own, payer, change, param):
    body = {"pixAccountId": payer.pix_account_id, "outcome": "failed", "reason": "because", **change}
    reply = await own.admin("POST", "/admin/v1/payouts/c000000000000000000000000/resolve", body)
    assert (reply.status, reply.code, reply.param) == (400, "validation_error", param)
    reason = {name: value for name, value in body.items() if name != "reason"}
    assert (await own.admin("POST", "/admin/v1/payouts/c0/resolve", reason)).param in {param, "reason"}


async def test_a_payout_of_another_account_is_not_found(own, payer):
    other = await own.new_account(balance_cents=1_000)
    sent = (await pay(own, other, "stuck")).body["payoutId"]
    reply = await resolve(own, payer, sent)
    assert (reply.status, reply.code) == (404, "not_found")


async def test_open_payouts_of_every_account_are_listed_oldest_first(own):
    accounts = [await own.new_account(balance_cents=1_000) for _ in range(2)]
    sent = [(await pay(own, accounts[number % 2], "stuck")).body["payoutId"] for number in range(5)]
    await pay(own, accounts[0], "reject-AC03")
    seen, cursor = [], ""
    while True:
        page = (await own.admin("GET", f"/admin/v1/payouts?status=PROCESSING&limit=2{cursor}")).body
        seen += [item["id"] for item in page["payouts"]]
        if page["nextCursor"] is None:
            break
        cursor = f"&cursor={page['nextCursor']}"
    assert seen == sorted(seen)
    assert seen[-5:] == sent
    assert (await own.admin("GET", "/admin/v1/payouts?status=FAILED")).status == 400
    assert (await own.request("GET", "/admin/v1/payouts", key="wrong")).status == 401


async def test_alarms_are_listed_and_resolved_with_a_reason(own, payer):
    sent = (await pay(own, payer, "stuck")).body["payoutId"]
    await own.post(f"/sandbox/payouts/{sent}/settle", payer.api_key)
    await provoke_alarm(own, payer, sent)
    page = (await own.admin("GET", "/admin/v1/alarms?limit=200")).body
    (alarm,) = [alarm for alarm in page["alarms"] if alarm["subject"] == sent]
    assert set(alarm) == ALARM
    assert alarm["detail"] == "the provider rejected it while SUCCEEDED"
    assert (alarm["resolvedAt"], alarm["resolution"]) == (None, None)
    body = {"pixAccountId": payer.pix_account_id, "reason": "the provider took it back"}
    done = await own.admin("POST", f"/admin/v1/alarms/{alarm['id']}/resolve", body)
    assert (done.status, done.body["resolution"]) == (200, "the provider took it back")
    again = await own.admin("POST", f"/admin/v1/alarms/{alarm['id']}/resolve", body)
    assert again.code == "not_found"
    assert (await audit_of(own, alarm["id"]))[0]["after"]["reason"] == "the provider took it back"
    still = (await own.admin("GET", "/admin/v1/alarms?limit=200")).body["alarms"]
    assert alarm["id"] not in [item["id"] for item in still]
    resolved = (await own.admin("GET", "/admin/v1/alarms?resolved=true&limit=200")).body["alarms"]
    assert alarm["id"] in [item["id"] for item in resolved]


async def provoke_alarm(service, account, payout_id):
    """Have the provider contradict itself, twice: one alarm, however often it is said."""
    database = await asyncpg.connect(service.database_url)
    body = await record(service, account, payout_id)
    await database.execute(
        "UPDATE sandbox_forced SET status = 'REJECTED', code = 'AB03' WHERE reference = $1",
        body["providerTransactionId"],
    )
    for number in range(2):
        name = (account.pix_account_id, f"c{number}{payout_id[2:]}")
        nudge = json.dumps([account.pix_account_id, body["endToEndId"]]).encode()
        await database.execute(
            "INSERT INTO notifications (account_id, notification_id, kind, body, received_at) "
            "VALUES ($1, $2, 'order', $3, '2999-01-01')",
            *name,
            nudge,
        )
        await database.execute(
            "INSERT INTO work (account_id, kind, id, due_at, leased_until) "
            "VALUES ($1, 'notification', $2, '2000-01-01', '2000-01-01')",
            *name,
        )
    left = "SELECT count(*) FROM work WHERE kind = 'notification' AND account_id = $1"

    async def worked_off():
        return not await database.fetchval(left, account.pix_account_id)

    await service.until(worked_off)
    await database.close()


# --- the same on the command line -------------------------------------------------------------------


async def lastro(service, group: str, *options: str) -> tuple[int, str, str]:
    code = f"from lastro.cli.payouts import {group}; {group}()"
    command = [sys.executable, "-c", code, "--data-dir", str(service.data_dir), *options]
    done = await asyncio.to_thread(
        subprocess.run, command, capture_output=True, text=True, timeout=60, check=False
    )
    return done.returncode, done.stdout, done.stderr


async def test_the_command_line_lists_and_resolves(own, payer):
    payout_id = await stuck(own, payer)
    code, out, _ = await lastro(own, "payouts", "list", "--status", "STUCK", "--limit", "200", "--json")
    assert code == 0
    assert payout_id in [item["id"] for item in json.loads(out)["payouts"]]
    wanted = ("resolve", payout_id, "--account", payer.pix_account_id, "--outcome", "failed")
    code, _, words = await lastro(own, "payouts", *wanted)
    assert (code, "--reason" in words) == (2, True)
    code, out, words = await lastro(own, "payouts", *wanted, "--reason", "never arrived", "--json")
    assert (code, json.loads(out)["status"]) == (0, "FAILED"), words
    code, out, _ = await lastro(own, "alarms", "list")
    assert (code, "pixAccountId" in out or "nothing" in out) == (0, True)


async def test_everything_adds_up(own):
    """Decisions by hand go through the same books as everything else."""
    assert_sound(own)
