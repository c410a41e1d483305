"""What must hold after any fault: answered in time and in form, nothing lost, nothing doubled."""

import asyncio
from collections.abc import Sequence

import asyncpg

from tests.chaos.crowd import MEGABYTE, SLACK_S, Asked, Crowd, ask
from tests.support.service import Service

RECOVERY_MAX_S = 10.0
GROWTH_MAX_BYTES = 150 * MEGABYTE
RETRIERS = 64
RETRIES_MAX = 60

COUNT_RECORDS = {
    "/v1/payouts": """
SELECT external_ref, min(payout_id), count(*) FROM payouts WHERE account_id = ANY($1) GROUP BY 1""",
    "/v1/charges": """
SELECT external_ref, min(charge_id), count(*) FROM charges WHERE account_id = ANY($1) GROUP BY 1""",
}
COUNT_SUBMISSIONS = """
SELECT reference, count(*) FROM sandbox_submissions WHERE account_id = ANY($1)
GROUP BY account_id, reference HAVING count(*) > 1"""


def prove_answers(asked: Sequence[Asked], refusals: set[str] = frozenset({"unavailable"})) -> None:
    """Every request was served or refused for a while, within the time that the service promises."""
    wrong = [a for a in asked if not a.is_served and (a.status not in {429, 503} or a.code not in refusals)]
    assert not wrong, [(a.path, a.status, a.code) for a in wrong[:5]]
    late = [a for a in asked if a.seconds > a.limit_s + SLACK_S]
    assert not late, [(a.path, a.status, a.seconds) for a in late[:5]]


async def prove_books(service: Service, crowd: Crowd) -> None:
    """Retry what was refused with its own key: then each record is there once, and the ledger holds."""
    writes = [asked for asked in crowd.asked if asked.is_write]
    told = {asked.key: asked.record_id for asked in writes if asked.record_id}
    await _retry(service, [asked for asked in writes if not asked.record_id])
    db = await asyncpg.connect(service.database_url)
    account_ids = [account.pix_account_id for account in crowd.accounts]
    try:
        for path, sql in COUNT_RECORDS.items():
            stored = {ref: (record_id, count) for ref, record_id, count in await db.fetch(sql, account_ids)}
            for asked in (asked for asked in writes if asked.path == path):
                assert stored.get(asked.key) == (asked.record_id, 1), (path, asked, stored.get(asked.key))
                assert told.get(asked.key, asked.record_id) == asked.record_id
        assert await db.fetch(COUNT_SUBMISSIONS, account_ids) == [], "the provider got an order twice"
    finally:
        await db.close()
    code, report = await asyncio.to_thread(service.check)
    assert code == 0, report


async def _retry(service: Service, refused: list[Asked]) -> None:
    left = iter(refused)

    async def retry_on() -> None:
        for asked in left:
            for _ in range(RETRIES_MAX):
                reply = await ask(service, asked)
                if reply.status not in {409, 503}:
                    break
                await asyncio.sleep(0.2)
            assert asked.status == 201, (asked, reply.body)

    await asyncio.gather(*(retry_on() for _ in range(RETRIERS)))


def tell(kind: str, crowd: Crowd, recovery_s: float, before_bytes: int) -> None:
    """Print what was seen; pytest shows it when asked (-s)."""
    longest = max(asked.seconds for asked in crowd.recent)
    growth = (crowd.memory_bytes - before_bytes) / MEGABYTE
    seen = f"{dict(crowd.statuses())}, longest {longest:.1f} s, served after {recovery_s:.1f} s"
    print(f"\n{kind}: {seen}, {growth:+.0f} MB")
