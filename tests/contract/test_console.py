"""The pages of the console without a browser: what they show, to whom, and how they hear of news."""

import asyncio
import re

import aiohttp
import pytest

from lastro.console import routes
from lastro.identity.login import LoginDesk
from tests.support.console import Console, outline

ROWS = routes(LoginDesk(None, None, None))
PAGES = (
    "", "/charges", "/charges/new", "/payouts", "/payouts/new", "/statement", "/webhooks", "/webhooks/new",
    "/api-keys", "/limits", "/sandbox",
)  # fmt: skip


# --- who sees what --------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/console/login"])
async def test_every_page_has_the_strict_headers(console, path):
    page = await console.get("/" if path == "/" else console.base)
    csp = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in csp
    assert "unsafe" not in csp
    assert "frame-ancestors 'none'" in csp
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Referrer-Policy"] == "same-origin"
    assert page.headers["Cache-Control"] == "no-store"


async def test_a_blocked_entity_sees_only_a_notice(service, account, console):
    page = await console.get(f"{console.base}/charges/new")
    await service.admin("PATCH", f"/admin/v1/entities/{account.entity_id}", {"status": "BLOCKED"})
    for path in PAGES:
        shown = await console.get(console.base + path)
        assert shown.status == 403
        assert "Your access is blocked" in shown.text
        assert "R$" not in shown.text
    form = {
        "csrf": page.field("csrf"),
        "key": page.field("key"),
        "variant": "simple",
        "amount": "1.00",
        "expiresIn": "1h",
    }
    assert (await console.post(f"{console.base}/charges", form)).status == 403
    assert (await service.get("/v1/charges", account.api_key)).body["charges"] == []


async def test_an_account_without_any_history_has_all_its_pages(service):
    console = Console(service)
    await console.log_in(await service.new_account())
    for path in PAGES:
        assert (await console.get(console.base + path)).status == 200


# --- pages ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "pt"])
@pytest.mark.parametrize("path", PAGES)
async def test_every_page_can_be_read_aloud_and_loads_nothing_from_elsewhere(console, path, language):
    console.cookies["lastro_language"] = language
    page = await console.get(console.base + path)
    assert page.status == 200
    found = outline(page)
    assert found.h1 == 1
    assert found.unlabelled == []
    assert found.images_without_words == 0
    assert found.landmarks.count("main") == 1
    assert "nav" in found.landmarks
    assert len(found.ids) == len(set(found.ids))
    assert found.inline == []
    assert found.far == []
    assert f'lang="{"pt-BR" if language == "pt" else "en"}"' in page.text


@pytest.mark.parametrize(
    ("accept", "amount"),
    [
        ("pt-BR,pt;q=0.9,en;q=0.5", "R$\u00a01.000,00"),
        ("en-US,en;q=0.9,pt;q=0.1", "R$\u00a01,000.00"),
        ("fr", "R$\u00a01,000.00"),
    ],
)
async def test_money_is_written_as_the_browsers_language_does(console, accept, amount):
    page = await console.get(console.base, **{"Accept-Language": accept})
    assert amount in page.text


async def test_the_chosen_language_and_theme_are_kept(service):
    console = Console(service)
    for choice in ({"language": "pt"}, {"theme": "dark"}):
        assert (await console.post("/console/preferences", {**choice, "back": "/"})).status == 303
    page = await console.get("/")
    assert 'lang="pt-BR"' in page.text
    assert 'data-theme="dark"' in page.text
    assert "Entrar" in page.text


async def test_a_hostile_name_is_shown_and_not_run(service, account, console):
    body = {
        "pixAccountId": account.pix_account_id,
        "amountCents": "100",
        "payerName": "<script>alert(1)</script>",
    }
    await service.post("/sandbox/pix-in", account.api_key, body)
    for path in ("", "/statement"):
        page = await console.get(console.base + path)
        assert "&lt;script&gt;" in page.text
        assert "<script>alert" not in page.text


async def test_the_statement_pages_through_every_movement_with_its_running_balance(service, account, console):
    for number in range(30):
        body = {"pixAccountId": account.pix_account_id, "amountCents": str(100 + number)}
        await service.post("/sandbox/pix-in", account.api_key, body)
    seen, path = [], f"{console.base}/statement"
    while path:
        page = await console.get(path)
        seen += re.findall(r"/movements/(\w+)", page.text)
        following = re.search(r'rel="next" href="([^"]+)"', page.text)
        path = following[1].replace("&amp;", "&") if following else None
    assert len(seen) == len(set(seen)) == 31
    assert "R$\u00a01,034.35" in (await console.get(f"{console.base}/statement")).text


@pytest.mark.parametrize("kind", ["csv", "ofx"])
async def test_the_file_of_the_statement_is_the_apis_own(service, account, console, kind):
    for number in range(3):
        body = {"pixAccountId": account.pix_account_id, "amountCents": str(100 + number)}
        await service.post("/sandbox/pix-in", account.api_key, body)
    days = "from=2020-01-01&to=2020-12-31" if kind == "ofx" else "from=2020-01-01"
    mine = await console.get(f"{console.base}/statement/export?format={kind}&{days}")
    theirs = await service.get(f"/v1/statement/export?format={kind}&{days}", account.api_key)
    strip = re.compile(rb"<DTSERVER>[^<]*")
    assert strip.sub(b"", mine.raw) == strip.sub(b"", theirs.raw)
    assert mine.headers["Content-Disposition"].startswith("attachment")


@pytest.mark.parametrize(
    "query", ["status=NOPE", "from=x", "cursor=abc", "done=%3Cb%3E", "strange=1", "from=2026-02-30"]
)
async def test_a_query_that_makes_no_sense_gives_a_page_and_no_accident(console, query):
    page = await console.get(f"{console.base}/charges?{query}")
    assert page.status in {200, 400}
    assert "<html" in page.text
    assert "<b>" not in page.text


async def test_a_movement_leads_to_its_payout_its_charge_or_itself(service, account, console):
    body = {"pixKey": "ok@sandbox.test", "pixKeyType": "EMAIL", "amountCents": "100"}
    payout_id = (await service.post("/v1/payouts", account.api_key, body)).body["payoutId"]
    movements = (await service.get("/v1/statement", account.api_key)).body["movements"]
    debit, credit = movements[0]["movementId"], movements[-1]["movementId"]
    assert (
        await console.get(f"{console.base}/movements/{debit}")
    ).location == f"{console.base}/payouts/{payout_id}"
    shown = await console.get(f"{console.base}/movements/{credit}")
    assert shown.status == 200
    assert "pix.in.received" in shown.text
    assert (await console.get(f"{console.base}/movements/cxxxxxxxxxxxxxx")).status == 404


# --- live -----------------------------------------------------------------------------------------


async def _version(stream: aiohttp.StreamReader) -> str:
    async with asyncio.timeout(20):
        while not (line := await stream.readline()).startswith(b"data: "):
            assert line, "the stream ended"
    return line.decode().removeprefix("data: ").strip()


async def test_a_page_hears_of_money_that_comes_in(service, account, console):
    session = await service.session()
    headers = {"Cookie": f"lastro_session={console.cookies['lastro_session']}"}
    async with session.get(f"{service.url}{console.base}/live", headers=headers) as answer:
        assert answer.content_type == "text/event-stream"
        before = await _version(answer.content)
        assert f'data-version="{before}"' in (await console.get(console.base)).text
        body = {"pixAccountId": account.pix_account_id, "amountCents": "1"}
        await service.post("/sandbox/pix-in", account.api_key, body)
        assert await _version(answer.content) != before


async def test_listeners_are_bounded_and_their_places_are_free_again_when_they_go(service, console):
    session = await service.session()
    headers = {"Cookie": f"lastro_session={console.cookies['lastro_session']}"}
    url = f"{service.url}{console.base}/live"
    opened = []
    for _ in range(12):
        answer = await session.get(url, headers=headers)
        await _version(answer.content)
        opened.append(answer)
    async with session.get(url, headers=headers) as one_too_many:
        assert one_too_many.status == 503
    for answer in opened:
        answer.close()

    async def has_room():
        async with session.get(url, headers=headers) as answer:
            return answer.status == 200

    await service.until(has_room)


async def test_a_visitor_who_is_not_logged_in_hears_nothing(service, account):
    assert (await Console(service).get(f"/console/{account.pix_account_id}/live")).status == 303


# --- the table ------------------------------------------------------------------------------------


def test_no_control_of_the_sandbox_is_there_in_live_mode():
    controls = {row.path.removeprefix("/console/{account}") for row in ROWS if row.sandbox_only}
    assert controls == {
        "/sandbox", "/sandbox/pix-in", "/sandbox/clock", "/sandbox/faults", "/charges/{id}/pay",
        "/charges/{id}/give-back", "/payouts/{id}/settle", "/payouts/{id}/reject", "/payouts/{id}/cancel",
        "/payouts/{id}/give-back",
    }  # fmt: skip


def test_no_page_of_the_console_stands_in_the_description_of_the_api():
    rows = routes(LoginDesk(None, None, None))
    assert rows
    assert not any(row.documented for row in rows)
    assert all(row.form for row in rows if row.method == "POST")
