"""The command line as people and programs use it: real commands against a real service."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner

from lastro.cli import COMMANDS, main
from lastro.cli.payments import guess_type
from lastro.cli.sandbox import seconds_of
from lastro.cli.show import reais
from lastro.client import EVENT_NAMES

LASTRO = str(Path(sys.executable).parent / "lastro")
OK, NEGATIVE, USAGE, UNREACHABLE = 0, 1, 2, 3


@dataclass
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self):
        assert self.code == OK, self.err
        return json.loads(self.out)


@pytest.fixture
async def run(service):
    """Run a command with the API key of a fresh account, outside of the test's event loop."""
    account = await service.new_account(balance_cents=100_000)
    environment = {
        "LASTRO_API_KEY": account.api_key,
        "LASTRO_BASE_URL": service.url,
        "LASTRO_DATA_DIR": str(service.data_dir),
    }

    async def run(*words, **env):
        given = {**environment, **env}
        result = await asyncio.to_thread(CliRunner().invoke, main, words, env=given)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    run.account = account
    return run


# --- the surface ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_overview_can_be_imported_and_explains_itself(name):
    result = CliRunner().invoke(main, [name, "--help"])
    assert result.exit_code == OK, result.output
    assert "Usage:" in result.output


def test_every_subcommand_explains_itself():
    def walk(command, words):
        done = CliRunner().invoke(main, [*words, "--help"])
        assert done.exit_code == OK, (words, done.output)
        context = command.make_context(words[-1] if words else "lastro", [], resilient_parsing=True)
        for name in command.list_commands(context) if hasattr(command, "list_commands") else []:
            child = command.get_command(context, name)
            assert child.help, (*words, name)
            walk(child, [*words, name])

    walk(main, [])


def test_the_overview_is_quick_because_it_imports_nothing_of_the_service():
    code = "import sys; from lastro.cli import main; main(['--help'], standalone_mode=False)"
    code += "; print([m for m in sys.modules if m in ('asyncpg', 'rich', 'httptools', 'lastro.main')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")
    for name in COMMANDS:
        assert f"  {name} " in done.stdout


def test_a_port_that_is_taken_is_told_in_one_line(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        command = [str(Path(sys.executable).parent / "lastro"), "serve", "--port", str(port)]
        command += ["--data-dir", str(tmp_path / "data")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr == f"lastro: Cannot listen on 127.0.0.1, port {port}: Address already in use.\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion(shell):
    result = CliRunner().invoke(main, ["completion", shell])
    assert result.exit_code == OK, result.output
    assert "_LASTRO_COMPLETE" in result.output


def test_completion_completes():
    asked = {"_LASTRO_COMPLETE": "bash_complete", "COMP_WORDS": "lastro sandbox re", "COMP_CWORD": "2"}
    done = subprocess.run([LASTRO], env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert {line.partition(",")[2] for line in done.stdout.split()} == {"reject", "refund", "reset-clock"}


# --- money ------------------------------------------------------------------------------------------


async def test_a_charge_is_made_paid_and_refunded(run):
    charge = (
        await run("charges", "create", "1990", "--tag", "coffee", "--external-ref", "o-1", "--json")
    ).json
    assert (charge["amountCents"], charge["status"], charge["tag"]) == ("1990", "PENDING", "coffee")
    assert re.fullmatch(r"E\w{31}", (await run("sandbox", "pay", charge["id"], "--json")).json["endToEndId"])
    assert (await run("charges", "get", "o-1", "--external-ref", "--json")).json["status"] == "PAID"
    listed = await run("charges", "list", "--status", "PAID")
    assert charge["id"] in listed.out
    assert "R$ 19,90" in listed.out
    refund = (await run("charges", "refund", charge["id"], "--amount-cents", "990", "--json")).json
    assert refund["amountCents"] == "990"
    assert (await run("sandbox", "refund", charge["id"], "--json")).json["amountCents"] == "1000"
    refreshed = await run("charges", "refresh", charge["id"])
    assert "REFUNDED" in refreshed.out
    other = (await run("charges", "create", "5", "--json")).json
    assert (await run("charges", "cancel", other["id"], "--json")).json["status"] == "CANCELLED"


async def test_a_code_can_be_copied_whole_from_a_narrow_terminal(run):
    charge = await run("charges", "create", "100", COLUMNS="40", FORCE_COLOR="1")
    code = re.search(r"^0002.+$", charge.out, re.MULTILINE)
    assert code, charge.out
    assert (await run("charges", "list", "--json")).json["charges"][0]["brCode"] == code[0]


async def opened_payouts(run) -> list[str]:
    """Walk the operators' list to its end: other tests leave open payouts of their own."""
    found, cursor = [], ()
    while True:
        page = (await run("payouts", "open", "--limit", "200", *cursor, "--json")).json
        found += [row["id"] for row in page["payouts"]]
        if page["nextCursor"] is None:
            return found
        cursor = ("--cursor", page["nextCursor"])


async def test_a_payout_is_sent_decided_and_read(run):
    sent = (await run("payouts", "send", "stuck@sandbox.test", "500", "--external-ref", "p-1", "--json")).json
    assert sent["kind"] == "submitted"
    assert sent["payoutId"] in await opened_payouts(run)
    assert (await run("sandbox", "settle", sent["payoutId"], "--json")).json["status"] == "SUCCEEDED"
    payout = (await run("payouts", "get", "p-1", "--external-ref", "--json")).json
    assert (await run("payouts", "get", payout["endToEndId"], "--json")).json["id"] == sent["payoutId"]
    assert "Pix sent to" in (await run("payouts", "movement", sent["payoutId"])).out
    assert (await run("sandbox", "refund", sent["payoutId"], "--json")).json["amountCents"] == "500"
    for verb, status in (("reject", "FAILED"), ("cancel", "CANCELLED")):
        other = (await run("payouts", "send", "stuck@sandbox.test", "5", "--json")).json["payoutId"]
        assert (await run("sandbox", verb, other, "--json")).json["status"] == status
    assert "SUCCEEDED" not in (await run("payouts", "list", "--status", "FAILED")).out


async def test_an_operator_decides_an_open_payout_from_the_same_group(run, service):
    sent = (await run("payouts", "send", "stuck@sandbox.test", "5", "--json")).json
    words = ["--account", run.account.pix_account_id, "--outcome", "failed", "--reason", "test", "--json"]

    async def resolved():
        answer = await run("payouts", "resolve", sent["payoutId"], *words)
        assert answer.code == OK or "invalid_state" in answer.err, answer.err
        return answer.json if answer.code == OK else None

    # Only once its time to be sent is over may a person decide.
    assert (await service.until(resolved, every_s=1))["status"] == "FAILED"


async def test_a_code_is_decoded_and_paid_with_its_own_amount(run, service):
    other = await service.new_account()
    charge = (await run("charges", "create", "321", "--json", LASTRO_API_KEY=other.api_key)).json
    assert (await run("payouts", "decode", charge["brCode"], "--json")).json["amountCents"] == "321"
    assert (await run("payouts", "pay-qr", charge["brCode"], "--json")).json["kind"] == "submitted"
    assert (await run("payouts", "lookup", "ok@sandbox.test", "--json")).json["owner"]["name"]


async def test_the_statement_is_read_and_exported(run, tmp_path):
    assert (await run("sandbox", "pix-in", "250", "--payer-name", "Ana Lima")).code == OK
    listed = await run("statement", "list")
    assert "Ana Lima" in listed.out
    assert "R$ 1.002,50" in listed.out
    assert (await run("statement", "balance", "--json")).json["balanceCents"] == "100250"
    assert (await run("statement", "summary", "--json")).json["creditsCount"] == 2
    for kind in ("csv", "ofx", "jsonl"):
        path = tmp_path / f"s.{kind}"
        assert (await run("statement", "export", "--format", kind, "-o", str(path))).code == OK
        assert "Ana Lima" in path.read_text()
        assert [p.name for p in tmp_path.glob("*.part")] == []
    assert "Ana Lima" in (await run("statement", "export")).out


async def test_webhook_endpoints_are_kept_from_the_command_line(run):
    hook = (await run("webhooks", "create", "http://127.0.0.1:9/x", "--json")).json
    assert sorted(hook["events"]) == sorted(EVENT_NAMES)
    assert "http://127.0.0.1:9/x" in (await run("webhooks", "list")).out
    changed = (
        await run("webhooks", "change", hook["id"], "--event", "pix.charge.paid", "--disabled", "--json")
    ).json
    assert (changed["events"], changed["enabled"]) == (["pix.charge.paid"], False)
    await run("webhooks", "change", hook["id"], "--enabled")
    delivery = (await run("webhooks", "test", hook["id"], "pix.charge.paid", "--json")).json
    assert delivery["id"] in (await run("webhooks", "deliveries", hook["id"])).out
    assert (await run("webhooks", "delivery", hook["id"], delivery["id"])).code == OK
    assert (await run("webhooks", "resend", hook["id"], delivery["id"], "--json")).json["id"] == delivery[
        "id"
    ]
    rotated = await run("webhooks", "rotate-secret", hook["id"])
    assert re.search(r"^whsec_\S+$", rotated.out, re.MULTILINE)
    assert (await run("webhooks", "delete", hook["id"], "--json")).json["enabled"] is False
    assert (await run("webhooks", "list")).out.strip() == "Nothing here yet."


@pytest.mark.parametrize("event", EVENT_NAMES)
async def test_every_event_can_be_made_to_happen(run, event):
    told = (await run("trigger", event, "--json")).json
    assert told["event"] == event
    assert told["eventId"].startswith("evt_")
    assert int(told["data"]["amountCents"]) == 100


async def test_faults_are_set_and_taken_back(run):
    assert (await run("sandbox", "faults", "--duplicate-rate", "0.5", "--json")).json["duplicateRate"] == 0.5
    assert (await run("sandbox", "faults", "--json")).json["duplicateRate"] == 0.0


async def test_any_path_can_be_read(run):
    assert (await run("get", "/v1/account")).json["id"] == run.account.pix_account_id
    assert (await run("get", "/v1/charges?limit=1")).json == {"charges": [], "nextCursor": None}
    assert (await run("get", "v1/account")).code == USAGE
    page = await run("get", "/docs")
    assert page.code == NEGATIVE
    assert "does not answer with JSON" in page.err


# --- what goes wrong --------------------------------------------------------------------------------


async def test_exit_codes_tell_programs_what_happened(run, tmp_path):
    refused = await run("payouts", "send", "ok@sandbox.test", "600000")
    assert refused.code == NEGATIVE
    assert "422 limit_exceeded" in refused.err
    assert "remainingCents: 500000" in refused.err
    assert (await run("charges", "get", "c" * 25)).code == NEGATIVE
    assert (await run("charges", "create", "nothing")).code == USAGE
    assert (await run("charges", "create", "0")).code == USAGE
    assert (await run("nonsense")).code == USAGE
    assert (await run("charges", "list", "--base-url", "ftp://x")).code == USAGE
    away = await run("charges", "list", "--base-url", "http://127.0.0.1:9")
    assert away.code == UNREACHABLE
    assert "http://127.0.0.1:9 does not answer" in away.err
    assert "Traceback" not in away.err
    nobody = await run("charges", "list", LASTRO_API_KEY="", LASTRO_DATA_DIR=str(tmp_path))
    assert nobody.code == USAGE
    assert "lastro serve" in nobody.err
    nowhere = await run("statement", "export", "-o", str(tmp_path / "none" / "s.csv"))
    assert (nowhere.code, "Traceback" in nowhere.err) == (USAGE, False)
    assert "No such file or directory" in nowhere.err


async def test_what_is_not_said_comes_from_the_sandboxes_demo_file(run, service):
    first, second = (one["pixAccountId"] for one in service.demo["accounts"])
    for words, account_id in (
        ([], first),
        (["--account", "2"], second),
        (["--account", second], second),
    ):
        answer = await run("get", "/v1/account", *words, LASTRO_API_KEY="", LASTRO_BASE_URL="")
        assert answer.json["id"] == account_id
    several = await run("get", "/v1/account", LASTRO_API_KEY=service.demo["multiAccountApiKey"])
    assert several.code == NEGATIVE
    assert "Say --account" in several.err
    demo = await run("demo", "--json")
    assert demo.json["tenantId"] == service.demo["tenantId"]


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
async def test_tables_cut_words_but_never_an_id_or_an_amount(run, columns):
    tag = "a tag that is far too long for any table " * 3
    charge = (await run("charges", "create", "123456", "--tag", tag, "--json")).json
    shown = await run("charges", "list", COLUMNS=str(columns), FORCE_COLOR="1")
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown.out)
    assert re.search(rf"^{charge['id']}  PENDING  R\$ 1\.234,56\b", plain, re.MULTILINE)
    assert max(len(line) for line in plain.splitlines()) <= columns
    assert len(plain.splitlines()) == 2


def test_pix_keys_whose_form_leaves_no_doubt_need_no_type():
    for pix_key, kind in {
        "a@b.test": "EMAIL",
        "+5511912345678": "PHONE",
        "12.ABC.345/01DE-35": "CNPJ",
        "123e4567-e89b-12d3-a456-426655440000": "EVP",
    }.items():
        assert guess_type(pix_key) == kind
    result = CliRunner().invoke(main, ["payouts", "send", "52998224725", "1", "--api-key", "x"])
    assert result.exit_code == USAGE
    assert "--type" in result.output


def test_durations_and_money_are_written_as_people_do():
    assert [seconds_of(text) for text in ("90", "90s", "15m", "2h", "30d")] == [90, 90, 900, 7200, 2_592_000]
    assert CliRunner().invoke(main, ["sandbox", "advance", "soon"]).exit_code == USAGE
    for cents, text in {"0": "R$ 0,00", "-5": "-R$ 0,05", "123456789": "R$ 1.234.567,89", "x": "x"}.items():
        assert reais(cents) == text


# --- the doctor -------------------------------------------------------------------------------------


def by_what(answer):
    return {finding["what"]: finding for finding in json.loads(answer.out)}


async def test_the_doctor_finds_a_healthy_service_healthy(run):
    answer = await run("doctor", "--json")
    found = by_what(answer)
    assert answer.code == OK, found
    assert {finding["level"] for finding in found.values()} == {"ok"}
    assert set(found) == {"python", "data", "disk", "database", "service", "clock", "api key"}
    assert "mode sandbox" in found["service"]["found"]
    assert "ready" in (await run("doctor")).out


async def test_the_doctor_says_what_to_do(run, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        cases = {
            ("service", "fail", "nothing listens"): {"LASTRO_BASE_URL": "http://127.0.0.1:9"},
            ("service", "fail", "port"): {"LASTRO_BASE_URL": url},
            ("api key", "fail", "401"): {"LASTRO_API_KEY": "nobody"},
            ("database", "fail", "does not answer"): {"LASTRO_DATABASE_URL": "postgresql://x@127.0.0.1:9/x"},
            ("settings", "fail", "LASTRO_"): {"LASTRO_MODE": "live", "LASTRO_ISPB": ""},
            ("data", "warn", "does not exist"): {"LASTRO_DATA_DIR": str(tmp_path / "none")},
        }
        for (what, level, words), env in cases.items():
            answer = await run("doctor", "--json", **env)
            finding = by_what(answer)[what]
            assert finding["level"] == level
            assert words in finding["found"]
            assert finding["advice"]
            assert answer.code == (NEGATIVE if level == "fail" else OK)


async def test_the_doctor_notices_secrets_that_others_can_read(run, tmp_path):
    (tmp_path / "secrets.json").write_text("{}")
    (tmp_path / "secrets.json").chmod(0o644)
    finding = by_what(await run("doctor", "--json", LASTRO_DATA_DIR=str(tmp_path)))["secrets"]
    assert (finding["level"], finding["advice"]) == ("fail", f"chmod 600 {tmp_path / 'secrets.json'}")


async def test_the_doctor_reaches_the_database_that_was_named(run, service):
    finding = by_what(await run("doctor", "--json", LASTRO_DATABASE_URL=service.database_url))["database"]
    assert (finding["level"], finding["found"][:10]) == ("ok", "PostgreSQL")
