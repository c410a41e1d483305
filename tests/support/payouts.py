"""Payouts for tests: values without a database, and the few requests that every payout test makes."""

import atexit
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

from lastro.accounts.model import Account
from lastro.idempotency.decide import Claim
from lastro.kit.ids import new_id
from lastro.ledger.model import GENESIS_HASH, Balance
from lastro.limits.decide import window_at
from lastro.payouts.decide import Destination, Ids, Send, send
from lastro.payouts.model import PaymentMethod, Payout
from lastro.payouts.steps import Batch
from lastro.provider.port import Party
from tests.support.service import Reply, Service, TestAccount

NOON = datetime(2026, 7, 1, 15, tzinfo=UTC)  # 12:00 in Sao Paulo
FINAL = {"SUCCEEDED", "FAILED", "CANCELLED", "REFUNDED"}
ACCOUNT_ID = "caccount00000000000000000"
PARTY = Party("Ana Lima", "52998224725", "18236120", "Nu Pagamentos S.A.", "0001", "1234567", "CACC")


def account(**fields) -> Account:
    made = Account(
        account_id=ACCOUNT_ID,
        short_code="shortcod",
        tenant_id=UUID(int=1),
        entity_id=UUID(int=2),
        core_account_id=UUID(int=3),
        branch="0001",
        account_number="1234567",
        label="52998224725",
        enabled=True,
        status="APPROVED",
        pix_in_fee_cents=0,
        pix_in_fee_bps=0,
        pix_out_fee_cents=0,
        pix_out_fee_bps=0,
        limit_per_transaction_cents=500_000,
        limit_daily_cents=2_000_000,
        limit_night_cents=100_000,
        rate_multiplier=Decimal(1),
        monthly_goal_cents=0,
        created_at=NOON,
        updated_at=NOON,
    )
    return made._replace(**fields)


def balance(cents: int, *, blocked: int = 0) -> Balance:
    return Balance(ACCOUNT_ID, cents, blocked, 0, 0, 0, 0, 0, 0, NOON - timedelta(days=1), GENESIS_HASH)


def command(amount_cents: int = 1_000, *, key: str = "key-00000001", **fields) -> Send:
    ids = Ids(new_id(NOON), new_id(NOON), f"E99999999202607011500{new_id(NOON)[-11:]}", f"ref-{key}")
    made = Send(
        claim=Claim(ACCOUNT_ID, key, b"fingerprint", ids.payout_id),
        ids=ids,
        amount_cents=amount_cents,
        description=None,
        external_ref=None,
        destination=Destination(PaymentMethod.PIX_KEY, "ana@example.com", "EMAIL", PARTY),
        refusal=None,
        request_id="request",
        render=lambda _: b"{}",
    )
    return made.but(**fields)


def decide(
    given: Send,
    *,
    holder: Account | None = None,
    funds: Balance | None = None,
    consumed_cents: int = 0,
    taken: set[tuple[str, str]] | None = None,
    now: datetime = NOON,
):
    """Decide one payout with everything in its favour unless said otherwise."""
    return send(
        given,
        account=holder or account(),
        balance=funds or balance(1_000_000),
        window=window_at(now),
        consumed_cents=consumed_cents,
        taken_refs=taken or set(),
        now=now,
        real_now=now,
    )


def batch_of(
    payout: Payout, *, holder: Account | None = None, funds: Balance | None = None, now=NOON, known=()
):
    """A batch that has read one payout."""
    return Batch(
        {ACCOUNT_ID: funds or balance(100_000)},
        {ACCOUNT_ID: holder or account()},
        {(ACCOUNT_ID, payout.payout_id): payout},
        set(known),
        {},
        now=now,
    )


# --- a service whose clock may be moved ------------------------------------------------------------

_clocked: list[Service] = []


def clocked_service() -> Service:
    """One service for all tests that move the clock, started when the first of them asks."""
    if not _clocked:
        _clocked.append(Service().start())
        atexit.register(_clocked[0].destroy)
    return _clocked[0]


# --- over HTTP --------------------------------------------------------------------------------------


async def pay(service: Service, account: TestAccount, to: str = "ok", cents: int = 100, **more) -> Reply:
    """Send to a sandbox destination by name, or to any e-mail key."""
    headers = {"idempotency_key": more.pop("idempotency_key")} if "idempotency_key" in more else {}
    key = to if "@" in to else f"{to}@sandbox.test"
    body = {"pixKey": key, "pixKeyType": "EMAIL", "amountCents": str(cents), **more}
    return await service.post("/v1/payouts", account.api_key, body, **headers)


async def record(service: Service, account: TestAccount, payout_id: str) -> dict:
    reply = await service.get(f"/v1/payouts/{payout_id}", account.api_key)
    assert reply.status == 200, reply.body
    return reply.body


async def until_status(
    service: Service, account: TestAccount, payout_id: str, *wanted: str, timeout_s: float = 30
) -> dict:
    """Wait until a payout stands where it should, and return its record."""

    async def probe():
        found = await record(service, account, payout_id)
        return found if found["status"] in wanted else None

    return await service.until(probe, timeout_s=timeout_s)


async def events_of(service: Service, account: TestAccount, payout_id: str) -> list[dict]:
    """The events of a payout, oldest first."""
    reply = await service.get("/v1/inbox?limit=200", account.api_key)
    assert reply.status == 200, reply.body
    found = [event for event in reply.body["events"] if event["data"].get("payoutId") == payout_id]
    return found[::-1]


async def entries_of(service: Service, account: TestAccount) -> list[dict]:
    """Every entry of an account, newest movement first."""
    found, cursor = [], ""
    while True:
        reply = await service.get(f"/v1/statement?limit=100{cursor}", account.api_key)
        assert reply.status == 200, reply.body
        found += [entry for movement in reply.body["movements"] for entry in movement["entries"]]
        if reply.body["nextCursor"] is None:
            return found
        cursor = f"&cursor={reply.body['nextCursor']}"


def assert_sound(service: Service) -> None:
    """`lastro check` finds nothing: the books, the features' rows, no order submitted twice."""
    code, report = service.check()
    assert code == 0, report["problems"]
