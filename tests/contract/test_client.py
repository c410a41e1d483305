"""The Python client against the real service: every call of its surface, blocking and awaited alike."""

import asyncio
import inspect
import time
from datetime import UTC, datetime, timedelta

import pytest

from lastro.client import (
    AsyncLastro,
    ChargePaid,
    Conflict,
    Forbidden,
    InsufficientFunds,
    InvalidRequest,
    Lastro,
    LimitExceeded,
    NotFound,
    Refused,
    Unauthorized,
    aio,
    blocking,
    typed,
)
from tests.support.service import Service, TestAccount

SUCCEEDED = "SUCCEEDED"


class Bench:
    """The blocking client of a fresh account, used from threads as a program would."""

    def __init__(self, service: Service, account: TestAccount) -> None:
        self.service, self.account = service, account
        self.client = Lastro(account.api_key, service.url)

    async def run(self, act):
        return await asyncio.to_thread(act, self.client)


@pytest.fixture
async def bench(service):
    account = await service.new_account(balance_cents=100_000)
    bench = Bench(service, account)
    yield bench
    bench.client.close()


def wait_for(read, status):
    until = time.monotonic() + 30
    while (record := read()).status != status:
        assert time.monotonic() < until, record
        time.sleep(0.1)
    return record


async def test_a_charge_lives_through_the_client(bench):
    def act(client):
        made = client.charges.create(
            1990,
            tag="coffee",
            external_ref="order 1/é",
            expiration_date=datetime.now(UTC) + timedelta(hours=1),
        )
        assert (made.status, made.amount_cents, made.tag) == ("PENDING", 1990, "coffee")
        assert made.expires_at - made.created_at < timedelta(hours=1, seconds=1)
        paid_id = client.sandbox.pay(made.id, payer_name="Ana").end_to_end_id
        paid = client.charges.get(made.id)
        assert (paid.status, paid.end_to_end_id, paid.payer_name) == ("PAID", paid_id, "Ana")
        assert paid.image_base64
        assert client.charges.by_external_ref("order 1/é").id == made.id
        assert client.charges.refresh(made.id).kind == "unchanged"
        refund = client.charges.refund(made.id, amount_cents=990, description="half")
        assert (refund.amount_cents, refund.charge_id) == (990, made.id)
        assert [row.id for row in client.charges.refunds(made.id).refunds] == [refund.id]
        dropped = client.charges.create(5)
        assert client.charges.cancel(dropped.id).status == "CANCELLED"
        with pytest.raises(Conflict) as caught:
            client.charges.create(7, external_ref="order 1/é")
        assert caught.value.code == "external_ref_conflict"

    await bench.run(act)


async def test_variants_take_their_fields(bench):
    def act(client):
        day = (datetime.now(UTC) + timedelta(days=10)).date()
        made = client.charges.create(
            1000, variant="cobv", debtor_name="Rui", debtor_document="52998224725", due_date=day,
            type_fine="PERCENT", fine=2.5,
        )  # fmt: skip
        assert (made.variant, made.fine, made.debtor_document) == ("cobv", 2.5, "52998224725")
        assert made.due_date.date() >= day

    await bench.run(act)


async def test_a_payout_lives_through_the_client(bench):
    def act(client):
        found = client.lookup("ok@sandbox.test", "EMAIL")
        sent = client.payouts.send(
            "ok@sandbox.test", "EMAIL", 500, description="thanks", external_ref="p 1", dict_lookup_id=found.id
        )
        assert sent.kind == "submitted"
        settled = wait_for(lambda: client.payouts.get(sent.payout_id), SUCCEEDED)
        assert (settled.amount_cents, settled.beneficiary_name) == (500, found.owner.name)
        assert client.payouts.by_external_ref("p 1").id == sent.payout_id
        assert client.payouts.by_end_to_end_id(settled.end_to_end_id).id == sent.payout_id
        moved = client.payouts.movement(sent.payout_id)
        assert (moved.movement.type, moved.entries[0].amount_cents) == ("DEBIT", -500)
        flat = client.payouts.movement_by_end_to_end_id(settled.end_to_end_id)
        assert (flat.movement_id, flat.status) == (moved.movement_id, "POSTED")
        full = client.movement_full(moved.movement_id)
        assert full.payout.id == sent.payout_id
        assert client.movement(moved.movement_id).movement_id == moved.movement_id
        rejected = client.payouts.send("reject-AC03@sandbox.test", "EMAIL", 5)
        assert rejected.kind == "rejected"
        assert client.payouts.get(rejected.payout_id).provider_status_code == "AC03"
        stuck = client.payouts.send("stuck@sandbox.test", "EMAIL", 5)
        assert client.sandbox.settle(stuck.payout_id).status == SUCCEEDED
        assert client.sandbox.refund_payout(stuck.payout_id).amount_cents == 5
        assert [p.id for p in client.payouts.list(status="FAILED")] == [rejected.payout_id]

    await bench.run(act)


async def test_a_code_of_another_account_is_decoded_and_paid(bench, service):
    other = await service.new_account()
    with Lastro(other.api_key, service.url) as receiver:
        charge = await asyncio.to_thread(receiver.charges.create, 700)

        def act(client):
            seen = client.decode_qr(charge.br_code)
            assert (seen.amount_cents, seen.is_amount_editable) == (700, False)
            sent = client.payouts.pay_qr(charge.br_code, 700, qr_code_decode_id=seen.id)
            wait_for(lambda: client.payouts.get(sent.payout_id), SUCCEEDED)
            wait_for(lambda: receiver.charges.get(charge.id), "PAID")

        await bench.run(act)


async def test_lists_are_walked_to_their_end(bench):
    def act(client):
        made = [client.charges.create(number).id for number in range(1, 8)]
        assert [charge.id for charge in client.charges.list(limit=3)] == made[::-1]
        page = client.charges.page(limit=3)
        assert len(page.charges) == 3
        assert page.next_cursor
        for charge_id in made[:5]:
            client.sandbox.pay(charge_id)
        amounts = [row.entries[0].amount_cents for row in client.statement(limit=2)]
        assert amounts == [5, 4, 3, 2, 1, 100_000]
        assert client.statement_page(limit=1).balance_cents == 100_015
        summary = client.summary()
        assert (summary.credits_cents, summary.credits_count) == (100_015, 6)
        assert client.balance().available_cents == 100_015
        events = list(client.inbox(limit=2, event="pix.charge.paid"))
        assert len(events) == 5
        assert {type(typed(event.event, event.data)) for event in events} == {ChargePaid}
        text = b"".join(client.export("csv")).decode()
        assert len(text.strip().splitlines()) == 7

    await bench.run(act)


async def test_the_account_is_read(bench):
    def act(client):
        account = client.account()
        assert account.id == bench.account.pix_account_id
        assert client.limits().per_transaction_cents == account.limit_per_transaction_cents == 500_000
        assert client.fees().pix_in_fee_cents == 0
        assert client.rate_limit().is_bypass
        assert client.get("/v1/account")["id"] == account.id

    await bench.run(act)


async def test_webhook_endpoints_are_kept(bench):
    def act(client):
        hook = client.webhooks.create("http://127.0.0.1:9/hook", ["pix.charge.paid"], auth_token="t" * 20)
        assert hook.signing_secret.startswith("whsec_")
        assert client.webhooks.get(hook.id).signing_secret is None
        assert [row.id for row in client.webhooks.list()] == [hook.id]
        changed = client.webhooks.change(hook.id, events=["pix.charge.expired"], enabled=False)
        assert (changed.events, changed.enabled) == (["pix.charge.expired"], False)
        client.webhooks.change(hook.id, enabled=True)
        assert client.webhooks.rotate_secret(hook.id).signing_secret != hook.signing_secret
        delivery = client.webhooks.test(hook.id, "pix.charge.expired")
        assert delivery.test
        until = time.monotonic() + 20
        while not (seen := client.webhooks.delivery(hook.id, delivery.id)).attempts:
            assert time.monotonic() < until
            time.sleep(0.1)
        assert seen.attempts[0].error
        assert [row.id for row in client.webhooks.deliveries(hook.id)] == [delivery.id]
        assert client.webhooks.resend(hook.id, delivery.id).id == delivery.id
        assert client.webhooks.delete(hook.id).enabled is False

    await bench.run(act)


async def test_refusals_are_typed(bench, service):
    def act(client):
        for kind, code, call in (
            (
                InsufficientFunds,
                "insufficient_funds",
                lambda: client.payouts.send("a@b.com", "EMAIL", 100_001),
            ),
            (LimitExceeded, "limit_exceeded", lambda: client.payouts.send("a@b.com", "EMAIL", 500_001)),
            (NotFound, "not_found", lambda: client.charges.get("c" * 25)),
            (NotFound, "pix_key_not_found", lambda: client.lookup("missing@sandbox.test", "EMAIL")),
            (InvalidRequest, "invalid_pix_key", lambda: client.lookup("nonsense", "CPF")),
            (InvalidRequest, "invalid_cursor", lambda: client.charges.page(cursor="x")),
        ):
            with pytest.raises(kind) as caught:
                call()
            assert caught.value.code == code
            assert caught.value.request_id
        key = "the-same-key"
        first = client.charges.create(1, idempotency_key=key)
        assert client.charges.create(1, idempotency_key=key) == first
        with pytest.raises(Conflict) as caught:
            client.charges.create(2, idempotency_key=key)
        assert caught.value.code == "idempotency_conflict"

    account = await service.new_account(
        balance_cents=100_000, limitDailyCents="1000000", limitNightCents="1000000"
    )
    bench.client = Lastro(account.api_key, service.url)
    await bench.run(act)
    other = Lastro(bench.account.api_key, service.url, account_id=account.pix_account_id)
    with pytest.raises(Forbidden):
        await asyncio.to_thread(other.account)
    with pytest.raises(Unauthorized):
        await asyncio.to_thread(Lastro("nobody", service.url).account)
    with pytest.raises(InvalidRequest) as caught:
        await asyncio.to_thread(Lastro(service.demo["multiAccountApiKey"], service.url).account)
    assert caught.value.code == "pix_account_required"


async def test_a_key_of_several_accounts_says_which(service):
    chosen = service.demo["accounts"][1]["pixAccountId"]
    with Lastro(service.demo["multiAccountApiKey"], service.url, account_id=chosen) as client:
        assert (await asyncio.to_thread(client.account)).id == chosen
        assert await asyncio.to_thread(lambda: list(client.webhooks.list())) == []


async def test_the_awaited_client_does_the_same(service):
    account = await service.new_account(balance_cents=1000)
    async with AsyncLastro(account.api_key, service.url) as client:
        made = await asyncio.gather(
            *(client.charges.create(number, external_ref=f"r{number}") for number in (1, 2, 3))
        )
        await client.sandbox.pay(made[0].id)
        assert (await client.charges.by_external_ref("r1")).status == "PAID"
        assert {charge.id async for charge in client.charges.list(limit=1)} == {charge.id for charge in made}
        assert [row.entries[0].amount_cents async for row in client.statement(limit=1)] == [1, 1000]
        assert b"".join([chunk async for chunk in client.export("jsonl")]).count(b"\n") == 2
        with pytest.raises(Refused):
            await client.payouts.send("ok@sandbox.test", "EMAIL", 1_000_000)
        hook = await client.webhooks.create("http://127.0.0.1:9/hook", ["pix.charge.paid"])
        assert [row.id async for row in client.webhooks.list()] == [hook.id]
        assert (await client.fees()).pix_in_fee_cents == 0


async def test_the_clock_and_faults_answer_to_the_admin_token(service):
    with Lastro(service.admin_token, service.url) as client:
        assert (await asyncio.to_thread(client.sandbox.faults, duplicate_rate=0.5)).duplicate_rate == 0.5
        assert (await asyncio.to_thread(client.sandbox.faults)).duplicate_rate == 0.0


def test_both_clients_have_one_surface():
    for name in ("Charges", "Payouts", "Webhooks", "Sandbox"):
        assert _surface(getattr(blocking, name)) == _surface(getattr(aio, name)), name
    assert _surface(Lastro) == _surface(AsyncLastro)


def _surface(kind):
    names = [name for name in dir(kind) if not name.startswith("_")]
    return {name: inspect.signature(getattr(kind, name)).parameters for name in names}
