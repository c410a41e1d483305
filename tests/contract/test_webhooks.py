"""Webhook endpoints over HTTP: register, list, read, change, remove, rotate the secret."""

import asyncio

import pytest

from tests.support.hooks import FIELDS, UTC, Hooks
from tests.support.webhooks import EVERY_EVENT


@pytest.fixture
async def hooks(service):
    return Hooks(service, await service.new_account())


# --- register, list, read, delete ------------------------------------------------------------------


async def test_registration_shows_token_and_secret_this_once(hooks):
    reply = await hooks.ask(
        "POST",
        "",
        {"url": "https://client.example/h", "events": EVERY_EVENT, "authToken": "tok-12345678"},
    )
    assert reply.status == 201
    assert set(reply.body) == FIELDS | {"authToken", "signingSecret"}
    assert reply.body["authToken"] == "tok-12345678"
    assert reply.body["authTokenPreview"] == "****5678"
    assert reply.body["signingSecret"].startswith("whsec_")
    assert reply.body["pixAccountId"] == hooks.account.pix_account_id
    assert reply.body["events"] == EVERY_EVENT
    assert reply.body["enabled"] is True
    assert UTC.fullmatch(reply.body["createdAt"])
    read = await hooks.ask("GET", f"/{reply.body['id']}")
    assert read.status == 200
    assert read.body == {name: reply.body[name] for name in FIELDS}
    listed = (await hooks.ask("GET")).body
    assert listed == {"webhooks": [read.body], "nextCursor": None}


@pytest.mark.parametrize(
    ("token", "preview"),
    [(None, None), ("short", "****"), ("12345678901", "****"), ("123456789012", "****9012")],
)
async def test_a_token_is_previewed_only_when_four_characters_tell_little(hooks, token, preview):
    made = await hooks.add(**({"authToken": token} if token else {}))
    assert (made["authToken"], made["authTokenPreview"]) == (token, preview)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"url": None}, "url"),
        ({"url": "https:/"}, "url"),
        ({"url": "http://client.example/hook"}, "url"),
        ({"url": "ftp://client.example/hook"}, "url"),
        ({"url": "https://user:pw@client.example/"}, "url"),
        ({"url": "https://client.example/#part"}, "url"),
        ({"url": "https://client.example/" + "a" * 2048}, "url"),
        ({"url": "http://10.0.0.1/hook"}, "url"),
        ({"events": []}, "events"),
        ({"events": None}, "events"),
        ({"events": "pix.in.received"}, "events"),
        ({"events": ["pix.in.received", "pix.in.received"]}, "events"),
        ({"events": ["pix.in.received", "pix.unknown"]}, "events"),
        ({"events": ["PIX.IN.RECEIVED"]}, "events"),
        ({"authToken": ""}, "authToken"),
        ({"authToken": "x" * 501}, "authToken"),
        ({"authToken": "segredo é"}, "authToken"),
        ({"authToken": "two\nlines"}, "authToken"),
        ({"authToken": 5}, "authToken"),
        ({"enabled": True}, "enabled"),
    ],
)
async def test_a_registration_that_breaks_a_rule_names_the_field(hooks, change, param):
    body = {"url": "https://client.example/hook", "events": ["pix.in.received"], **change}
    body = {name: value for name, value in body.items() if value is not None}
    reply = await hooks.ask("POST", "", body)
    assert (reply.status, reply.code) == (400, "validation_error")
    assert reply.param.split("[")[0].split(".")[0] == param


async def test_bounds_themselves_are_accepted(hooks):
    url = "https://client.example/"
    made = await hooks.add(url + "a" * (2048 - len(url)), EVERY_EVENT, authToken="~" * 500)
    assert len(made["url"]) == 2048
    assert (await hooks.add("http://127.0.0.1:9/"))["url"] == "http://127.0.0.1:9/"


async def test_registration_is_idempotent_and_its_stored_answer_is_sealed(hooks, service):
    body = {
        "url": "https://client.example/hook",
        "events": ["pix.in.received"],
        "authToken": "secret-token-1",
    }
    key = "register-once-1"
    replies = await asyncio.gather(*(hooks.ask("POST", "", body, idempotency_key=key) for _ in range(5)))
    assert {reply.status for reply in replies} == {201}
    assert len({reply.raw for reply in replies}) == 1
    assert sum("Idempotent-Replayed" in reply.headers for reply in replies) == 4
    assert len((await hooks.ask("GET")).body["webhooks"]) == 1
    other = await hooks.ask("POST", "", {**body, "authToken": "another"}, idempotency_key=key)
    assert (other.status, other.code) == (409, "idempotency_conflict")
    missing = await hooks.ask("POST", "", body, idempotency_key="")
    assert (missing.status, missing.code) == (400, "idempotency_key_required")
    assert "secret-token-1" not in service.log()
    assert replies[0].body["signingSecret"] not in service.log()


async def test_the_twenty_first_endpoint_is_refused_and_a_removed_one_makes_room(hooks):
    made = [await hooks.add() for _ in range(20)]
    body = {"url": "https://client.example/hook", "events": ["pix.in.received"]}
    refused = await hooks.ask("POST", "", body, idempotency_key="one-too-many")
    assert (refused.status, refused.code) == (409, "invalid_state")
    assert refused.body["error"]["details"] == {"limit": 20}
    await hooks.ask("DELETE", f"/{made[0]['id']}")
    assert (await hooks.ask("POST", "", body, idempotency_key="one-too-many")).status == 201


async def test_the_list_is_newest_first_and_pages(hooks):
    ids = [(await hooks.add())["id"] for _ in range(5)]
    seen, cursor = [], None
    while True:
        page = (await hooks.ask("GET", "?limit=2" + (f"&cursor={cursor}" if cursor else ""))).body
        seen += [row["id"] for row in page["webhooks"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    assert seen == ids[::-1]
    assert (await hooks.ask("GET", "?cursor=nonsense")).code == "invalid_cursor"
    assert (await hooks.ask("GET", "?limit=0")).param == "limit"
    assert (await hooks.ask("GET", "?page=2")).param == "page"


async def test_a_removed_endpoint_is_gone(hooks):
    made = await hooks.add()
    removed = await hooks.ask("DELETE", f"/{made['id']}")
    assert (removed.status, removed.body) == (200, {"id": made["id"], "enabled": False})
    for method in ("GET", "DELETE"):
        assert (await hooks.ask(method, f"/{made['id']}")).status == 404
    assert (await hooks.ask("PATCH", f"/{made['id']}", {"enabled": True})).status == 404
    assert (await hooks.ask("POST", f"/{made['id']}/rotate-secret", {})).status == 404
    assert (await hooks.ask("GET", f"/{made['id']}/deliveries")).status == 404
    assert (await hooks.ask("GET")).body["webhooks"] == []


async def test_another_accounts_endpoint_is_not_found_and_another_account_forbidden(hooks, service):
    other = Hooks(service, await service.new_account())
    foreign = (await other.add())["id"]
    answer = await hooks.ask("GET", f"/{foreign}")
    unknown = await hooks.ask("GET", "/c000000000000000000000000")
    assert (answer.status, answer.code) == (unknown.status, unknown.code) == (404, "not_found")
    assert (await hooks.ask("DELETE", f"/{foreign}")).status == 404
    assert (await other.ask("GET", f"/{foreign}")).status == 200
    reply = await service.request("GET", other.base, key=hooks.account.api_key)
    assert (reply.status, reply.code) == (403, "forbidden")
    assert (await hooks.ask("GET", "/short")).code == "validation_error"


# --- change, rotate --------------------------------------------------------------------------------


async def test_a_change_leaves_what_it_does_not_name(hooks):
    made = await hooks.add(authToken="tok-12345678")
    before = {name: made[name] for name in FIELDS}
    url = "https://other.example/hook"
    for change in ({}, {"events": ["pix.charge.paid"]}, {"url": url}, {"enabled": False}, {"enabled": True}):
        reply = await hooks.ask("PATCH", f"/{made['id']}", change)
        before.update(change)
        assert (reply.status, reply.body) == (200, before)
        assert (await hooks.ask("GET", f"/{made['id']}")).body == before


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"url": "http://client.example/"}, "url"),
        ({"url": None}, "url"),
        ({"events": []}, "events"),
        ({"events": ["pix.in.received"] * 2}, "events"),
        ({"enabled": "yes"}, "enabled"),
        ({"authToken": "new"}, "authToken"),
    ],
)
async def test_a_change_that_breaks_a_rule_names_the_field(hooks, change, param):
    made = await hooks.add()
    reply = await hooks.ask("PATCH", f"/{made['id']}", change)
    assert (reply.status, reply.code) == (400, "validation_error")
    assert reply.param.split("[")[0].split(".")[0] == param


async def test_a_rotation_replays_its_own_secret_and_the_next_one_brings_another(hooks):
    made = await hooks.add()
    first = await hooks.ask("POST", f"/{made['id']}/rotate-secret", {}, idempotency_key="rotate-one")
    again = await hooks.ask("POST", f"/{made['id']}/rotate-secret", {}, idempotency_key="rotate-one")
    second = await hooks.ask("POST", f"/{made['id']}/rotate-secret", {})
    assert first.status == second.status == 200
    assert first.raw == again.raw
    assert again.headers["Idempotent-Replayed"] == "true"
    secrets = {body["signingSecret"] for body in (made, first.body, second.body)}
    assert len(secrets) == 3
    assert set(first.body) == FIELDS | {"signingSecret"}
