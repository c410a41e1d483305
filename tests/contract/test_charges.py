"""Creating and reading charges, as the contract tells it: forms, rules of the three variants, pictures."""

import re
from datetime import UTC, datetime, timedelta

import pytest
import yarl

from lastro.kit import brcode
from tests.support.charges import (
    AFTER_PAYMENT,
    CNPJ,
    CPF,
    LETTERED_CNPJ,
    PROVIDER_RESPONSE,
    check_full,
    check_refreshed,
    check_summary,
    cobv,
    create,
    debtor,
    from_base64,
    pay,
    read,
    read_png,
    refresh,
    simple,
    today,
)
from tests.support.service import new_key

COBV_ONLY = ("dueDate", "fineDate", "typeFine", "fine")
DEBTOR_ONLY = ("debtorName", "debtorDocument", "debtorTypeDocument")


@pytest.fixture(scope="module")
async def account(service):
    return await service.new_account()


def instant(text):
    return datetime.fromisoformat(text)


def stamp(at):
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def test_a_new_simple_charge_has_exactly_the_summary_fields(service, account):
    reply = await service.post("/v1/charges", account.api_key, simple(1_234, tag="blue", externalRef="first"))
    assert reply.status == 201
    charge = check_summary(reply.body)
    assert charge["pixAccountId"] == account.pix_account_id
    assert (charge["variant"], charge["status"], charge["amountCents"]) == ("simple", "PENDING", "1234")
    assert (charge["tag"], charge["externalRef"]) == ("blue", "first")
    assert charge["refundedAmountCents"] == "0"
    empty = (*AFTER_PAYMENT, *COBV_ONLY, *DEBTOR_ONLY, "refundEndToEndId", "refundedAt", "failureReason")
    assert {name: charge[name] for name in empty} == dict.fromkeys(empty)
    assert instant(charge["expiresAt"]) - instant(charge["createdAt"]) == timedelta(days=1)


async def test_a_charge_of_each_variant_reads_the_same_in_every_form(service, account):
    for body in (simple(), debtor(), cobv(typeFine="VALUE", fine=1.5)):
        charge = await create(service, account, body)
        full = await read(service, account, charge)
        assert {name: full[name] for name in charge} == charge
        again = check_refreshed(
            (await service.post(f"/v1/charges/{charge['id']}/refresh", account.api_key)).body
        )
        assert again == full
        assert full["depositSnapshot"]["request"] == body
        response = full["depositSnapshot"]["providerResponse"]
        assert set(response) == PROVIDER_RESPONSE
        assert (response["tx_id"], response["br_code"]) == (charge["txid"], charge["brCode"])


async def test_the_code_is_a_dynamic_br_code_of_the_charge(service, account):
    for body, path in ((simple(1_050), "/cob/"), (cobv(1_050), "/cobv/")):
        charge = await create(service, account, body)
        code = brcode.read(charge["brCode"])
        assert path in code.url
        assert code.url.endswith(charge["txid"])


async def test_txids_of_one_account_begin_alike_and_are_never_the_same(service, account):
    other = await service.new_account()
    txids = [(await create(service, account))["txid"] for _ in range(3)]
    assert len(set(txids)) == 3
    assert len({txid[:8] for txid in txids}) == 1
    assert (await create(service, other))["txid"][:8] != txids[0][:8]


async def test_a_debtor_charge_names_its_debtor(service, account):
    cases = [(CPF, "CPF"), (CNPJ, "CNPJ"), (LETTERED_CNPJ, "CNPJ")]
    for document, kind in cases:
        for given in ({}, {"debtorTypeDocument": kind}):
            charge = await create(service, account, debtor(debtorDocument=document, **given))
            assert (charge["debtorName"], charge["debtorDocument"]) == ("Maria de Souza", document)
            assert charge["debtorTypeDocument"] == kind
            assert {name: charge[name] for name in COBV_ONLY} == dict.fromkeys(COBV_ONLY)


async def test_a_cobv_charge_without_more_has_no_fine_and_lives_thirty_days_past_its_due_date(
    service, account
):
    charge = await create(service, account, cobv(due_in_days=40))
    due = instant(charge["dueDate"]).date()
    assert charge["typeFine"] == "NONE"
    assert charge["fine"] is None
    assert instant(charge["fineDate"]).date() == due + timedelta(days=1)
    assert charge["expiresAt"] == f"{due + timedelta(days=30)}T23:59:59.999-03:00"
    assert charge["debtorDocument"] == CPF


@pytest.mark.parametrize(
    ("kind", "fine", "shown"),
    [
        ("VALUE", 10, 10),
        ("VALUE", 0.01, 0.01),
        ("PERCENT", 2, 2),
        ("PERCENT", 99.99, 99.99),
        ("NONE", None, None),
    ],
)
async def test_a_fine_is_shown_as_it_was_given(service, account, kind, fine, shown):
    more = {} if fine is None else {"fine": fine}
    charge = await create(service, account, cobv(typeFine=kind, **more))
    assert (charge["typeFine"], charge["fine"]) == (kind, shown)


async def test_due_dates_may_be_days_or_instants_and_today_counts(service, account):
    day = today()
    noon = f"{day}T15:00:00Z"
    as_day = await create(service, account, cobv(due_in_days=0))
    as_instant = await create(service, account, {**cobv(), "dueDate": noon})
    assert as_day["dueDate"] == as_instant["dueDate"]
    assert instant(as_day["dueDate"]).date() >= day


async def test_a_due_date_on_a_weekend_moves_and_takes_fine_and_validity_along(service, account):
    saturday = today() + timedelta(days=(5 - today().weekday()) % 7 + 7)
    fine_on = saturday + timedelta(days=3)
    body = cobv(typeFine="VALUE", fine=1, fineDate=fine_on.isoformat(), validAfterDueDays=5)
    charge = await create(service, account, {**body, "dueDate": saturday.isoformat()})
    moved = instant(charge["dueDate"]).date() - saturday
    assert moved >= timedelta(days=2)
    assert instant(charge["fineDate"]).date() == fine_on + moved
    assert instant(charge["expiresAt"]).date() == saturday + moved + timedelta(days=5)


async def test_an_expiration_date_is_kept_to_the_millisecond(service, account):
    at = datetime.now(UTC).replace(microsecond=123_000) + timedelta(hours=3)
    charge = await create(service, account, simple(expirationDate=stamp(at)))
    assert instant(charge["expiresAt"]) == at


COMMON = {
    "variant": [None, "boleto", 1],
    "amountCents": [None, 100, "", "0", "000", "-1", "1.0", "1\n", "\u0661", "1" * 16],
    "tag": ["", "x" * 201, 5],
    "externalRef": ["", "x" * 65, 1],
    "tagg": ["x"],
    "amount_cents": ["1"],
}
NOT_OF_SIMPLE = {"debtorName": ["Ana"], "debtorDocument": [CPF], "debtorTypeDocument": ["CPF"]}
ONLY_OF_COBV = {
    "dueDate": ["2030-01-02"],
    "typeFine": ["NONE"],
    "fine": [1],
    "fineDate": ["2030-01-02"],
    "validAfterDueDays": [1],
}
NEVER_A_DATE = ["tomorrow", "2026-12-31", "2026-13-31T00:00:00Z", "2030-01-01T00:00:00", 1_800_000_000]
PAST_AND_FAR = ["2020-01-01T00:00:00.000Z", "2999-01-01T00:00:00Z", "2999-12-31T00:00:00-03:00"]
BAD_DEBTOR = {
    "debtorName": [None, "", "x" * 201],
    "debtorDocument": [None, "", "123", "52998224724", "11111111111", "12ABC34501DE36"],
    "debtorTypeDocument": ["CNPJ", "RG"],
}
BAD_COBV = {
    "dueDate": [
        None, "2020-01-01", "2026-02-30", "2027-W40-1", "31/12/2026", "9999-12-31", "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z", "2030-01-01T00:00:00",
    ],
    "expirationDate": ["2030-01-01T00:00:00Z"],
    "typeFine": ["BOTH", "VALUE"],
    "fine": [1],
    "fineDate": ["2020-01-01", "9999-12-31", "soon"],
    "validAfterDueDays": [-1, 366, "3", 1.5],
}  # fmt: skip
BAD_FINE = [
    *({"typeFine": "VALUE", "fine": fine} for fine in (None, 0, -1, 0.001, "1", True, 1e300, 10**17)),
    *({"typeFine": "PERCENT", "fine": fine} for fine in (None, 0, 100, 1.005)),
    {"typeFine": "NONE", "fine": 1},
]  # fmt: skip


def bad(base, *tables):
    for table in tables:
        for name, values in table.items():
            yield from ((base, {name: value}, "fine" if value == "VALUE" else name) for value in values)


CASES = [
    *bad(simple, COMMON, NOT_OF_SIMPLE, ONLY_OF_COBV, {"expirationDate": [*NEVER_A_DATE, *PAST_AND_FAR]}),
    *bad(debtor, COMMON, BAD_DEBTOR, ONLY_OF_COBV, {"expirationDate": PAST_AND_FAR}),
    *bad(cobv, COMMON, BAD_DEBTOR, BAD_COBV),
    *((cobv, change, "fine") for change in BAD_FINE),
]


@pytest.mark.parametrize(("base", "change", "param"), CASES)
async def test_a_field_that_breaks_its_rule_is_named(service, account, base, change, param):
    body = {name: value for name, value in {**base(), **change}.items() if value is not None}
    reply = await service.post("/v1/charges", account.api_key, body)
    assert (reply.status, reply.code, reply.param) == (400, "validation_error", param), reply.body


@pytest.mark.parametrize(
    "change",
    [
        {"amountCents": "007"}, {"amountCents": "9" * 15}, {"tag": "x"}, {"tag": "x" * 200}, {"tag": "ação"},
        {"externalRef": "é" * 64}, {"tag": None}, {"externalRef": None}, {"expirationDate": None},
    ],
)  # fmt: skip
async def test_values_at_their_bounds_are_taken(service, account, change):
    charge = await create(service, account, {**simple(), **change})
    assert charge["amountCents"] == str(int(change.get("amountCents", "1000")))
    for name in ("tag", "externalRef"):
        assert charge[name] == change.get(name)


async def test_the_same_external_reference_again_is_a_conflict_that_is_remembered(service, account):
    key = new_key()
    await create(service, account, simple(externalRef="only-once"))
    reply = await service.post(
        "/v1/charges", account.api_key, simple(externalRef="only-once"), idempotency_key=key
    )
    assert (reply.status, reply.code, reply.param) == (409, "external_ref_conflict", "externalRef")
    again = await service.post(
        "/v1/charges", account.api_key, simple(externalRef="only-once"), idempotency_key=key
    )
    assert (again.raw, again.headers["Idempotent-Replayed"]) == (reply.raw, "true")
    other = await service.new_account()
    assert (await create(service, other, simple(externalRef="only-once")))["externalRef"] == "only-once"


async def test_a_repeat_answers_as_the_first_did_byte_for_byte(service, account):
    key, body = new_key(), simple(tag="again")
    first = await service.post("/v1/charges", account.api_key, body, idempotency_key=key)
    await pay(service, account, first.body)
    reordered = dict(reversed(body.items()))
    again = await service.post("/v1/charges", account.api_key, reordered, idempotency_key=key)
    assert (again.status, again.raw) == (201, first.raw)
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"


@pytest.mark.parametrize("other", [simple(2), simple(1, tag="x"), {"variant": "simple", "amountCents": "x"}])
async def test_another_body_under_a_known_key_is_a_conflict_even_when_it_is_wrong(service, account, other):
    key = new_key()
    await service.post("/v1/charges", account.api_key, simple(1), idempotency_key=key)
    reply = await service.post("/v1/charges", account.api_key, other, idempotency_key=key)
    assert (reply.status, reply.code) == (409, "idempotency_conflict")


async def test_a_disabled_account_creates_nothing_but_repeats_reads_and_refreshes(service):
    account = await service.new_account()
    key = new_key()
    first = await service.post("/v1/charges", account.api_key, simple(), idempotency_key=key)
    await service.admin("PATCH", f"/admin/v1/pix-accounts/{account.pix_account_id}", {"enabled": False})
    reply = await service.post("/v1/charges", account.api_key, simple())
    assert (reply.status, reply.code) == (403, "account_disabled")
    again = await service.post("/v1/charges", account.api_key, simple(), idempotency_key=key)
    assert (again.status, again.raw) == (201, first.raw)
    assert (await refresh(service, account, first.body))["kind"] == "unchanged"
    await pay(service, account, first.body)
    assert (await read(service, account, first.body))["status"] == "PAID"


async def test_a_paid_charge_tells_who_paid_it(service, account):
    charge = await create(service, account)
    end_to_end_id = await pay(service, account, charge, payerName="Rui Barbosa", payerDocument=CPF)
    paid = await read(service, account, charge)
    assert (paid["status"], paid["endToEndId"], paid["payerName"]) == ("PAID", end_to_end_id, "Rui Barbosa")
    assert paid["payerDocument"] == "***.982.247-**"
    assert all(paid[name] is not None for name in AFTER_PAYMENT)
    movement = await service.get(f"/v1/movements/{paid['coreMovementId']}", account.api_key)
    assert movement.body["movement"]["source"] == "PIX_IN"


async def test_the_picture_holds_the_code_in_both_places_and_needs_no_key(service, account):
    charge = await create(service, account, debtor(1_234_567))
    full = await read(service, account, charge)
    assert read_png(from_base64(full["imageBase64"])) == charge["brCode"]
    assert charge["imageUrl"].startswith(service.url)
    shown = await service.request("GET", charge["imageUrl"].removeprefix(service.url))
    assert (shown.status, shown.headers["Content-Type"]) == (200, "image/png")
    assert read_png(shown.raw) == charge["brCode"]


async def test_a_wrong_token_shows_nothing(service, account):
    charge, other = await create(service, account), await create(service, account)
    path = charge["imageUrl"].removeprefix(service.url)
    stem = path.removesuffix(".png")
    swapped = "A" if stem[-1] != "A" else "B"
    foreign = other["imageUrl"].removeprefix(service.url).removesuffix(".png")[-22:]
    wrong = [stem[:-1] + swapped, stem[:-22] + foreign, stem[:-22], stem + "A", "/qr/x", stem[:-1] + "%C3%A9"]
    for token in wrong:
        reply = await service.request("GET", f"{token}.png")
        assert (reply.status, reply.code) == (404, "not_found"), token


async def test_a_charge_is_found_by_its_external_reference_whatever_is_in_it(service, account):
    header = {"X-Pix-Account-Id": account.pix_account_id}
    for reference in ("plain", "with space", "a/b?c=d&e", "çã%20", "..", "x" * 64):
        charge = await create(service, account, simple(externalRef=reference))
        quoted = re.sub(r".", lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode()), reference)
        session = await service.session()
        url = yarl.URL(f"{service.url}/v1/charges/external-ref/{quoted}", encoded=True)
        headers = {"Authorization": f"Bearer {account.api_key}", **header}
        async with session.get(url, headers=headers) as response:
            assert response.status == 200, reference
            found = check_full(await response.json())
        assert (found["id"], found["externalRef"]) == (charge["id"], reference)


async def test_the_lookup_by_reference_always_needs_the_account_header(service, account):
    reply = await service.get("/v1/charges/external-ref/first", account.api_key)
    assert (reply.status, reply.code) == (400, "pix_account_required")
    header = {"X-Pix-Account-Id": account.pix_account_id}
    missing = await service.get("/v1/charges/external-ref/never", account.api_key, headers=header)
    assert (missing.status, missing.code) == (404, "not_found")
    long = await service.get(f"/v1/charges/external-ref/{'x' * 65}", account.api_key, headers=header)
    assert (long.status, long.code, long.param) == (400, "validation_error", "externalRef")


async def test_foreign_and_unknown_charges_answer_alike(service, account):
    stranger = await service.new_account()
    charge = await create(service, stranger)
    unknown = "c" + "0" * 24
    for path in ("", "/refunds"):
        for charge_id in (charge["id"], unknown):
            reply = await service.get(f"/v1/charges/{charge_id}{path}", account.api_key)
            assert (reply.status, reply.code) == (404, "not_found")
    for path in ("refresh", "cancel", "refunds"):
        for charge_id in (charge["id"], unknown):
            reply = await service.post(f"/v1/charges/{charge_id}/{path}", account.api_key)
            assert (reply.status, reply.code) == (404, "not_found"), path
    for charge_id in ("c" * 9, "c" * 65):
        reply = await service.get(f"/v1/charges/{charge_id}", account.api_key)
        assert (reply.status, reply.code, reply.param) == (400, "validation_error", "id")
