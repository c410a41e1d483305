"""The alerts ring: their metrics exist and move, and what their pages say to do can be done."""

import asyncio
import math
import re
import subprocess
import sys
from pathlib import Path

import asyncpg
import click
import pytest
import pytest_asyncio
import yaml

from lastro.api import metrics
from lastro.cli import main as cli
from lastro.payouts.watch_queries import SUM_OPEN_HANDOVERS, SUM_OPEN_PAYOUTS
from lastro.store.migrate import migrate
from lastro.webhooks.watch_queries import LOAD_OLDEST_OWED
from tests.contract.test_admin_payouts import provoke_alarm
from tests.integration.test_statement_plans import explain, nodes
from tests.support.generate import FIRST_AT, generate_records
from tests.support.postgres import start_throwaway
from tests.support.service import Service
from tests.tidy.sources import ROOT

ALERTS = ROOT / "deploy/prometheus/alerts.yml"
PAGES = ROOT / "docs/runbook"
RULES = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]
HEADINGS = ["What it means", "What the client sees", "How to look", "How to mend", "When to escalate"]
NAMES = [rule["alert"] for rule in RULES]
METRIC = re.compile(r"\blastro_[a-z_]+")
BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def own():
    service = Service().start()
    yield service
    await service.close()
    service.destroy()


async def gauge(service: Service, name: str, **labels: str) -> float:
    """Read one gauge as Prometheus would."""
    text = (await service.request("GET", "/metrics")).raw.decode()
    wanted = name + ("{" + ",".join(f'{k}="{v}"' for k, v in labels.items()) + "}" if labels else "")
    return next(float(line.split()[-1]) for line in text.splitlines() if line.rsplit(" ", 1)[0] == wanted)


async def until(service: Service, holds, name: str, **labels: str) -> float:
    """Wait until a gauge is as it must become: it is read anew every few seconds."""

    async def probe():
        value = await gauge(service, name, **labels)
        return (value,) if holds(value) else None

    return (await service.until(probe, every_s=0.5))[0]


# --- the rules and their pages --------------------------------------------------------------------


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_has_the_shape_that_prometheus_reads(rule):
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert re.fullmatch(r"Lastro[A-Za-z]+", rule["alert"])
    assert re.fullmatch(r"\d+[smhd]", rule["for"])
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["expr"].count("(") == rule["expr"].count(")")
    assert re.fullmatch(
        r"(max|min)(?: by \([a-z, ]+\) )?\(lastro_\w+(\{\w+=\"\w+\"\})?\) (>|==) \d+", rule["expr"]
    )
    assert rule["annotations"]["summary"]


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_leads_to_a_page_that_says_everything(rule):
    page = ROOT / rule["annotations"]["runbook_url"]
    assert page.parent == PAGES
    text = page.read_text("utf-8")
    assert rule["alert"] in text
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == HEADINGS


def test_every_page_has_its_rule():
    assert len(NAMES) == len(set(NAMES))
    named = {ROOT / rule["annotations"]["runbook_url"] for rule in RULES}
    assert named == set(PAGES.glob("*.md")) - {PAGES / "README.md"}
    overview = (PAGES / "README.md").read_text("utf-8")
    assert all(f"`{rule['alert']}`" in overview and f"({page.name})" in overview
               for rule in RULES for page in [ROOT / rule["annotations"]["runbook_url"]])  # fmt: skip


async def test_every_metric_of_the_rules_is_there(own):
    """A rule on a name that nobody writes is silent for ever."""
    text = (await own.request("GET", "/metrics")).raw.decode()
    shown = {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    # A lane has its gauge once it was used.
    account = await own.new_account(balance_cents=1_000)
    assert account
    text = (await own.request("GET", "/metrics")).raw.decode()
    shown |= {re.split(r"[{ ]", line)[0] for line in text.splitlines() if not line.startswith("#")}
    asked = {name for rule in RULES for name in METRIC.findall(rule["expr"])}
    assert len(asked) >= 8
    assert asked - shown == set()
    for rule in RULES:
        for label, value in re.findall(r'(\w+)="(\w+)"', rule["expr"]):
            assert f'{METRIC.search(rule["expr"])[0]}{{{label}="{value}"}}' in text, rule["alert"]


def pages() -> list:
    return [pytest.param(path.read_text("utf-8"), id=path.stem) for path in sorted(PAGES.glob("*.md"))]


@pytest.mark.parametrize("text", pages())
def test_every_command_of_a_page_exists(text):
    """Those in the blocks with their options, and those named in a sentence."""
    lines = [line for _, block in BLOCK.findall(text) for line in block.splitlines()]
    lines += re.findall(r"`([^`\n]+)`", BLOCK.sub("", text))
    for line in lines:
        given = re.match(r"(?:\.venv/bin/)?lastro ((?:[a-z-]+(?: |$))*)(.*)", line)
        if given:
            check_options(given[1].split(), given[2], line)


def check_options(words: list[str], rest: str, line: str) -> None:
    command: click.Command = cli
    while words and isinstance(command, click.Group):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None, line
        command = found
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    assert set(re.findall(r"(?<=\s)--[a-z-]+", f" {rest}")) <= known, line


@pytest.mark.parametrize("text", pages())
async def test_every_route_of_a_page_exists(own, text):
    routes = (await own.request("GET", "/openapi.json")).body["paths"]
    for method, path in re.findall(r"`(GET|POST|PATCH|DELETE) (/[^`?]*)", text):
        assert method.lower() in routes.get(path, {}), f"{method} {path}"


@pytest.mark.parametrize("text", pages())
async def test_every_query_of_a_page_can_be_prepared(own, text):
    db = await asyncpg.connect(own.database_url)
    try:
        for kind, block in BLOCK.findall(text):
            if block.startswith("SELECT"):
                assert kind == "text"
                await db.prepare(block)
    finally:
        await db.close()


# --- the gauges move ------------------------------------------------------------------------------


async def send(service: Service, account, pix_key: str) -> str:
    body = {"pixKey": pix_key, "pixKeyType": "EMAIL", "amountCents": "100"}
    reply = await service.post("/v1/payouts", account.api_key, body)
    assert reply.status == 201, reply.body
    return reply.body["payoutId"]


async def test_an_unknown_outcome_shows_until_it_is_known(own):
    account = await own.new_account(balance_cents=10_000)
    await send(own, account, "timeout@sandbox.test")
    await own.admin("POST", "/sandbox/faults", {"dropRate": 1.0})
    try:
        await until(own, lambda value: value == 1, "lastro_payouts_open", status="SUBMITTED_UNKNOWN")
        await own.advance(3_600)
        labels = {"status": "SUBMITTED_UNKNOWN"}
        age_s = await until(own, lambda value: value >= 3_600, "lastro_payout_oldest_seconds", **labels)
        assert age_s < 7_200
    finally:
        await own.admin("POST", "/sandbox/faults", {"dropRate": 0.0})
    await own.advance(3_600)
    await until(own, lambda value: value == 0, "lastro_payouts_open", status="SUBMITTED_UNKNOWN")


async def test_a_stuck_payout_shows_until_it_is_decided(own):
    account = await own.new_account(balance_cents=10_000)
    assert await gauge(own, "lastro_payouts_open", status="STUCK") == 0
    payout = await send(own, account, "stuck@sandbox.test")
    await until(own, lambda value: value == 1, "lastro_payouts_open", status="PROCESSING")
    await own.advance(90_000)
    await until(own, lambda value: value == 1, "lastro_payouts_open", status="STUCK")
    assert await gauge(own, "lastro_payout_oldest_seconds", status="STUCK") >= 86_400
    decision = {"pixAccountId": account.pix_account_id, "outcome": "failed", "reason": "the runbook says so"}
    assert (await own.admin("POST", f"/admin/v1/payouts/{payout}/resolve", decision)).status == 200
    await until(own, lambda value: value == 0, "lastro_payouts_open", status="STUCK")
    assert await gauge(own, "lastro_payout_oldest_seconds", status="STUCK") == 0


async def test_an_alarm_shows_until_it_is_resolved(own):
    """The provider contradicts itself: settled, then rejected."""
    account = await own.new_account(balance_cents=10_000)
    assert await gauge(own, "lastro_alarms_open") == 0
    payout = await send(own, account, "stuck@sandbox.test")
    assert (await own.post(f"/sandbox/payouts/{payout}/settle", account.api_key)).status == 200
    await provoke_alarm(own, account, payout)
    await until(own, lambda value: value == 1, "lastro_alarms_open")
    for alarm in (await own.admin("GET", "/admin/v1/alarms")).body["alarms"]:
        reason = {"pixAccountId": alarm["pixAccountId"], "reason": "as expected in this test"}
        await own.admin("POST", f"/admin/v1/alarms/{alarm['id']}/resolve", reason)
    await until(own, lambda value: value == 0, "lastro_alarms_open")


async def test_the_verdict_of_the_ledger_check_reaches_the_service(own):
    """Never run, held, broken, mended: the command runs in a process of its own."""
    assert math.isnan(await gauge(own, "lastro_ledger_check_ok"))
    assert await gauge(own, "lastro_ledger_check_age_seconds") == math.inf
    assert own.check()[0] == 0
    await until(own, lambda value: value == 1, "lastro_ledger_check_ok")
    assert await gauge(own, "lastro_ledger_check_age_seconds") < 3_600
    account = await own.new_account(balance_cents=777)
    change = "UPDATE balances SET balance_cents = balance_cents + $2 WHERE account_id = $1"
    db = await asyncpg.connect(own.database_url)
    try:
        await db.execute(change, account.pix_account_id, 1)
        assert own.check()[0] == 1
        await until(own, lambda value: value == 0, "lastro_ledger_check_ok")
        await db.execute(change, account.pix_account_id, -1)
        assert own.check()[0] == 0
        await until(own, lambda value: value == 1, "lastro_ledger_check_ok")
    finally:
        await db.close()


async def test_a_check_of_a_read_only_copy_says_that_its_verdict_is_not_stored():
    url, stop = start_throwaway()
    try:
        await migrate(url)
        db = await asyncpg.connect(url)
        name = await db.fetchval("SELECT current_database()")
        await db.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
        await db.close()
        command = [str(Path(sys.executable).parent / "lastro"), "check", "--database-url", url]
        done = await asyncio.to_thread(
            subprocess.run, command, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        stop()
    assert (done.returncode, "Everything holds" in done.stdout) == (0, True), done
    assert "could not be stored" in done.stderr


async def test_handovers_and_late_deliveries_show(own):
    """With the loops away a receiver waits, and so does a delivery; the API alone tells of both."""
    receiver = await own.new_account()
    payer = await own.new_account(balance_cents=10_000)
    key = await own.admin(
        "POST", f"/admin/v1/pix-accounts/{receiver.pix_account_id}/pix-keys", {"pixKeyType": "EVP"}
    )
    hook = {"url": "http://127.0.0.1:9/hook", "events": ["pix.payout.succeeded"]}
    await own.post(f"/v1/pix-accounts/{payer.pix_account_id}/webhooks", payer.api_key, hook)
    pix_key = key.body["pixKey"]
    await own.close()
    own.stop()
    own.args = ("--no-worker",)
    own.start()
    try:
        body = {"pixKey": pix_key, "pixKeyType": "EVP", "amountCents": "100"}
        sent = await own.post("/v1/payouts", payer.api_key, body)
        await own.post(f"/sandbox/payouts/{sent.body['payoutId']}/settle", payer.api_key)
        await until(own, lambda value: value == 1, "lastro_handovers_open")
        await own.advance(600)
        await until(own, lambda value: value >= 600, "lastro_handover_oldest_seconds")
        await until(own, lambda value: value >= 600, "lastro_webhook_lag_seconds")
    finally:
        await own.close()
        own.stop()
        own.args = ()
        own.start()
    await until(own, lambda value: value == 0, "lastro_handovers_open")
    await until(own, lambda value: value == 0, "lastro_webhook_lag_seconds")


async def test_however_many_ask_the_database_is_asked_once(own):
    """Anybody may ask for the metrics: it must cost no more than one reading in a while."""
    db = await asyncpg.connect(own.database_url)
    count = "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
    try:
        await own.request("GET", "/metrics")
        before = await db.fetchval(count)
        session = await own.session()
        answers = await asyncio.gather(*(session.get(own.url + "/metrics") for _ in range(300)))
        assert {answer.status for answer in answers} == {200}
        for answer in answers:
            answer.release()
        await asyncio.sleep(1.5)  # the statistics are written with a delay
        after = await db.fetchval(count)
    finally:
        await db.close()
    assert after - before < 300, "loops and a reading or two, not hundreds of readings"


# --- what the gauges cost -------------------------------------------------------------------------


WATCHED = "cwatch0000000000000000001"
CROWD = f"""
INSERT INTO work SELECT account_id, 'payout', payout_id, created_at, created_at FROM payouts LIMIT 8000;
INSERT INTO work SELECT account_id, 'handover', end_to_end_id, created_at, created_at FROM payouts LIMIT 8000;
INSERT INTO handovers
SELECT account_id, end_to_end_id, account_id, 1, NULL, '{{}}', created_at, NULL FROM payouts;
INSERT INTO webhook_queue
SELECT account_id, 'cendpoint' || right(payout_id, 4), created_at, payout_id FROM payouts;
INSERT INTO webhook_leases
SELECT '{WATCHED}', 'cendpoint' || lpad(i::text, 4, '0'), 't', '{FIRST_AT}', '{FIRST_AT}', 0, false
FROM generate_series(1, 9999) AS i
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowded():
    """A database with many payouts, few of them open, and a long queue of deliveries."""
    url, stop = start_throwaway()
    await migrate(url)
    await generate_records(url, WATCHED, 50_000)
    db = await asyncpg.connect(url)
    await db.execute(CROWD)
    await db.execute("VACUUM ANALYZE")
    yield db
    await db.close()
    stop()


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize(
    ("sql", "values"),
    [
        (SUM_OPEN_PAYOUTS, (metrics.ROWS_MAX,)),
        (SUM_OPEN_HANDOVERS, (metrics.ROWS_MAX,)),
        (LOAD_OLDEST_OWED, (FIRST_AT.isoformat(), metrics.ROWS_MAX)),
    ],
    ids=["payouts", "handovers", "deliveries"],
)
async def test_a_gauge_reads_no_more_than_its_bound(crowded, sql, values, mode):
    async with crowded.transaction():
        await crowded.execute(f"SET LOCAL plan_cache_mode = {mode}")
        plan = await explain(crowded, sql, values)
    scans = [node for node in nodes(plan) if "Relation Name" in node]
    assert scans
    for node in scans:
        assert "Seq" not in node["Node Type"], node
        read = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        assert read <= 2 * metrics.ROWS_MAX + 1, node
