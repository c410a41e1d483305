"""The forms of the console: what a form may do, and that it does it once."""

import asyncio
import re
from datetime import date, timedelta

import pytest

from tests.support.console import Console


async def test_a_form_without_the_sessions_token_does_nothing(service, account, console):
    form = {"key": "console-" + "0" * 32, "variant": "simple", "amount": "1.00", "expiresIn": "1h"}
    stranger = Console(service)
    await stranger.log_in(await service.new_account())
    foreign = (await stranger.get(stranger.base)).field("csrf")
    for csrf in ("", "0" * 64, foreign):
        assert (await console.post(f"{console.base}/charges", {**form, "csrf": csrf})).status == 403
    assert (await service.get("/v1/charges", account.api_key)).body["charges"] == []


@pytest.mark.parametrize(
    "headers",
    [{"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}, {"Origin": "https://evil.example"}],
)
async def test_a_form_that_another_site_sent_does_nothing(service, account, console, headers):
    page = await console.get(f"{console.base}/charges/new")
    form = {
        "csrf": page.field("csrf"),
        "key": page.field("key"),
        "variant": "simple",
        "amount": "1.00",
        "expiresIn": "1h",
    }
    assert (await console.post(f"{console.base}/charges", form, **headers)).status == 403
    assert (await service.get("/v1/charges", account.api_key)).body["charges"] == []


async def test_a_form_route_takes_forms_and_a_json_route_takes_json(service, console):
    json = await console.ask("POST", f"{console.base}/charges", b"{}", **{"Content-Type": "application/json"})
    form = await console.ask(
        "POST", "/authenticate", b"document=1", **{"Content-Type": "application/x-www-form-urlencoded"}
    )
    assert (json.status, form.status) == (415, 415)


@pytest.mark.parametrize("body", [b"csrf=%ff", b"a=%00", b"&".join(b"f%d=1" % n for n in range(200))])
async def test_a_form_that_cannot_be_read_is_refused(console, body):
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    page = await console.ask("POST", f"{console.base}/charges", body, **headers)
    assert page.status == 400


async def test_a_charge_form_sent_twice_makes_one_charge(service, account, console):
    page = await console.get(f"{console.base}/charges/new")
    guard = {"csrf": page.field("csrf"), "key": page.field("key", form=f"{console.base}/charges")}
    form = {**guard, "variant": "simple", "amount": "12.34", "expiresIn": "1h", "tag": "twice"}
    first, second = await asyncio.gather(*(console.post(f"{console.base}/charges", form) for _ in range(2)))
    again = await console.post(f"{console.base}/charges", form)
    assert first.status == 303
    assert first.location == second.location == again.location
    charges = (await service.get("/v1/charges", account.api_key)).body["charges"]
    assert [(c["amountCents"], c["tag"]) for c in charges] == [("1234", "twice")]
    other = await console.post(f"{console.base}/charges", {**form, "amount": "99.00"})
    assert other.status == 409


async def test_a_payout_form_sent_many_times_at_once_pays_once(service, account, console):
    looked = await console.send(
        f"{console.base}/payouts/new",
        f"{console.base}/payouts/lookup",
        {"pixKeyType": "EMAIL", "pixKey": "OK@sandbox.test"},
    )
    assert looked.status == 303, looked.text
    page = await console.get(looked.location)
    action = f"{console.base}/payouts"
    guard = {"csrf": page.field("csrf"), "key": page.field("key", form=action)}
    form = {**guard, "prior": page.field("prior"), "amount": "250"}
    sent = await asyncio.gather(*(console.post(action, form) for _ in range(8)))
    assert {page.location for page in sent} == {sent[0].location}
    assert sent[0].status == 303
    payouts = (await service.get("/v1/payouts", account.api_key)).body["payouts"]
    assert [p["amountCents"] for p in payouts] == ["25000"]
    assert await service.balance(account) == 75_000


async def test_an_api_key_form_sent_twice_at_once_leaves_one_living_key_and_shows_it_both_times(
    service, account, console
):
    page = await console.get(f"{console.base}/api-keys")
    action = f"{console.base}/api-keys"
    form = {
        "csrf": page.field("csrf"),
        "key": page.field("key", form=action),
        "accounts": account.pix_account_id,
    }
    pages = await asyncio.gather(*(console.post(action, form) for _ in range(4)))
    texts = {re.search(r"lastro_sk_[\w-]{43}", page.text)[0] for page in pages}
    assert len(texts) == 1
    assert (await service.get("/v1/account", texts.pop())).status == 200
    listed = (await console.get(action)).text
    assert listed.count("/revoke") == 2  # the one that the test's account came with, and this one


async def test_a_revoked_api_key_opens_nothing_and_another_entitys_cannot_be_revoked(
    service, account, console
):
    stranger = Console(service)
    await stranger.log_in(await service.new_account())
    page = await console.get(f"{console.base}/api-keys")
    key_id = re.search(r"/api-keys/(\w+)/revoke", page.text)[1]
    theirs = (await stranger.get(f"{stranger.base}/api-keys")).field("csrf")
    refused = await stranger.post(f"{stranger.base}/api-keys/{key_id}/revoke", {"csrf": theirs})
    assert refused.status == 404
    assert (await service.get("/v1/account", account.api_key)).status == 200
    done = await console.post(f"{console.base}/api-keys/{key_id}/revoke", {"csrf": page.field("csrf")})
    assert done.status == 303
    assert (await service.get("/v1/account", account.api_key)).status == 401


async def test_a_refused_payout_says_why_and_may_be_tried_again(service, console):
    looked = await console.send(
        f"{console.base}/payouts/new",
        f"{console.base}/payouts/lookup",
        {"pixKeyType": "EMAIL", "pixKey": "ok@sandbox.test"},
    )
    page = await console.get(looked.location)
    action = f"{console.base}/payouts"
    form = {"csrf": page.field("csrf"), "key": page.field("key", form=action), "prior": page.field("prior")}
    refused = await console.post(action, {**form, "amount": "1000.01"})
    assert refused.status == 422
    assert "The balance does not cover the amount and its fee: R$\u00a01,000.00 is available." in refused.text
    assert 'value="1000.01"' in refused.text
    assert refused.field("key", form=action) != form["key"]
    once_more = await console.post(action, {**form, "key": refused.field("key", form=action), "amount": "10"})
    assert once_more.status == 303


async def test_the_console_and_the_api_count_calls_of_an_account_together(service):
    account = await service.new_account(balance_cents=10_000, rateLimitMultiplier=0.03)
    console = Console(service)
    await console.log_in(account)
    body = {"variant": "simple", "amountCents": "100"}
    for _ in range(3):  # 120 x 0.03
        assert (await service.post("/v1/charges", account.api_key, body)).status == 201
    fields = {"variant": "simple", "amount": "1", "expiresIn": "1h"}
    refused = await console.send(f"{console.base}/charges/new", f"{console.base}/charges", fields)
    assert refused.status == 429
    assert "Too many tries" in refused.text
    assert len((await service.get("/v1/charges", account.api_key)).body["charges"]) == 3


async def test_a_lookup_of_another_account_leads_nowhere(service, console):
    other = await service.new_account(balance_cents=1_000)
    body = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL"}
    prior = (await service.post("/v1/dict/lookup", other.api_key, body)).body["id"]
    shown = await console.get(f"{console.base}/payouts/new?prior={prior}")
    assert "Send now" not in shown.text
    form = {"csrf": shown.field("csrf"), "key": "console-" + "1" * 32, "prior": prior, "amount": "1"}
    assert (await console.post(f"{console.base}/payouts", form)).status == 404


@pytest.mark.parametrize("variant", ["simple", "debtor", "cobv"])
async def test_every_kind_of_charge_can_be_made_paid_and_refunded(service, account, console, variant):
    debtor = {"debtorName": "Ana", "debtorDocument": "529.982.247-25"}
    due = {"dueDate": (date.today() + timedelta(days=40)).isoformat(), "validAfterDueDays": "10"}
    fine = {"typeFine": "PERCENT", "fine": "2,5"}
    fields = {"variant": variant, "amount": "80.00", "expiresIn": "24h", **debtor, **due, **fine}
    made = await console.send(f"{console.base}/charges/new", f"{console.base}/charges", fields)
    assert made.status == 303, made.text
    charge_id = made.location.rpartition("/")[2]
    charge = (await service.get(f"/v1/charges/{charge_id}", account.api_key)).body
    assert (charge["variant"], charge["amountCents"]) == (variant, "8000")
    image = await console.get(f"{made.location}/qr.png")
    assert image.raw.startswith(b"\x89PNG")
    paid = await console.send(made.location, f"{made.location}/pay", {"payerName": "Bia"})
    assert paid.location.startswith(made.location)
    shown = await console.get(made.location)
    assert 'data-status="PAID"' in shown.text
    assert "Bia" in shown.text
    assert "pix.charge.paid" in shown.text
    refund = await console.send(made.location, f"{made.location}/refund", {"amount": "30.00"})
    assert refund.status == 303, refund.text
    charge = (await service.get(f"/v1/charges/{charge_id}", account.api_key)).body
    assert charge["refundedAmountCents"] == "3000"


async def test_a_cancelled_charge_is_cancelled_for_the_api_too(service, account, console):
    fields = {"variant": "simple", "amount": "5", "expiresIn": "1h"}
    made = await console.send(f"{console.base}/charges/new", f"{console.base}/charges", fields)
    done = await console.send(made.location, f"{made.location}/cancel")
    assert done.status == 303, done.text
    charge_id = made.location.rpartition("/")[2]
    assert (await service.get(f"/v1/charges/{charge_id}", account.api_key)).body["status"] == "CANCELLED"


async def test_a_code_of_the_service_can_be_read_and_paid(service, account, console):
    other = await service.new_account()
    charge = (
        await service.post("/v1/charges", other.api_key, {"variant": "simple", "amountCents": "1500"})
    ).body
    read = await console.send(
        f"{console.base}/payouts/new", f"{console.base}/payouts/decode", {"code": charge["brCode"]}
    )
    page = await console.get(read.location)
    assert 'value="15.00"' in page.text
    assert "readonly" in page.text
    action = f"{console.base}/payouts"
    form = {"csrf": page.field("csrf"), "key": page.field("key", form=action), "prior": page.field("prior")}
    sent = await console.post(action, {**form, "amount": "15.00"})
    assert sent.status == 303, sent.text

    async def is_paid():
        return (await service.get(f"/v1/charges/{charge['id']}", other.api_key)).body["status"] == "PAID"

    await service.until(is_paid)


@pytest.mark.parametrize(
    ("deed", "status"), [("settle", "SUCCEEDED"), ("reject", "FAILED"), ("cancel", "CANCELLED")]
)
async def test_the_panel_decides_the_fate_of_an_open_payout(service, account, console, deed, status):
    body = {"pixKey": "stuck@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}
    payout_id = (await service.post("/v1/payouts", account.api_key, body)).body["payoutId"]
    at = f"{console.base}/payouts/{payout_id}"
    done = await console.send(at, f"{at}/{deed}")
    assert done.status == 303, done.text
    assert (await service.get(f"/v1/payouts/{payout_id}", account.api_key)).body["status"] == status
    shown = await console.get(at)
    assert f'data-status="{status}"' in shown.text
    assert "pix.payout." in shown.text


async def test_an_endpoints_secret_is_shown_once_and_its_deliveries_can_be_sent_again(service, console):
    action = f"{console.base}/webhooks"
    made = await console.send(
        f"{action}/new", action, {"url": "http://127.0.0.1:9/x", "events": "pix.in.received"}
    )
    assert made.status == 200
    secret = re.search(r"whsec_[\w+/=]+", made.text)[0]
    endpoint = re.search(rf'href="{action}/(\w+)">', made.text)[1]
    at = f"{action}/{endpoint}"
    assert secret not in (await console.get(at)).text
    tested = await console.send(at, f"{at}/test", {"event": "pix.in.received"})
    assert tested.status == 303, tested.text
    delivery = re.search(rf"{at}/deliveries/(\w+)", (await console.get(at)).text)[1]
    again = await console.send(f"{at}/deliveries/{delivery}", f"{at}/deliveries/{delivery}/resend")
    assert again.status == 303, again.text
    removed = await console.send(at, f"{at}/remove")
    assert removed.location.startswith(action)
    assert (await console.get(at)).status == 404
