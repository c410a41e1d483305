"""Every documented operation under generated requests, valid, invalid and linked, on a service of its own."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.service import Service

# The suite runs one bounded pass. LASTRO_FUZZ_SECONDS=3600 hunts for an hour from a seed of its own.
SECONDS = int(os.environ.get("LASTRO_FUZZ_SECONDS", "0"))
SEED = os.environ.get("LASTRO_FUZZ_SEED", "" if SECONDS else "20260302")
EXAMPLES = int(os.environ.get("LASTRO_FUZZ_EXAMPLES", "6"))

CONFIG = """
color = false
request-timeout = 20
suppress-health-check = ["all"]

[auth.openapi]
apiKey = {{ bearer = "{api_key}" }}
adminToken = {{ bearer = "{admin_token}" }}
loginToken = {{ bearer = "{login_token}" }}

[generation]
allow-x00 = false
database = "none"

# A valid shape may still break a rule of the calendar, of check digits or of money: documented codes all.
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 422, 429, 503]

[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 406, 409, 413, 415, 422, 429]

[phases.fuzzing.generation]
max-examples = {examples}

# The links of the document, and no guesses: those would use up the steps on pairs that lead nowhere.
[phases.stateful]
max-steps = 8
inference = {{ algorithms = [] }}

[phases.stateful.generation]
mode = "positive"
max-examples = {scenarios}

# Values that exist, so that more than refusals is reached.
[dictionaries.accounts]
values = ["{account_id}"]
[dictionaries.keys]
values = ["ok@sandbox.test", "reject-AC03@sandbox.test", "fail-AB03@sandbox.test", "missing@sandbox.test"]
[dictionaries.types]
values = ["EMAIL"]
[dictionaries.amounts]
values = ["1", "100", "007"]
[dictionaries.codes]
values = ["{code}"]
[dictionaries.documents]
values = ["52998224725"]

[parameters]
"header.X-Pix-Account-Id" = {{ dictionary = "accounts", probability = 0.9 }}
"query.pixAccountId" = {{ dictionary = "accounts", probability = 0.9 }}
"path.accountId" = {{ dictionary = "accounts", probability = 0.7 }}
"body.pixAccountId" = {{ dictionary = "accounts", probability = 0.7 }}
"body.pixKey" = {{ dictionary = "keys", probability = 0.6 }}
"body.pixKeyType" = {{ dictionary = "types", probability = 0.6 }}
"body.amountCents" = {{ dictionary = "amounts", probability = 0.6 }}
"body.pixCopyAndPaste" = {{ dictionary = "codes", probability = 0.6 }}
"body.debtorDocument" = {{ dictionary = "documents", probability = 0.6 }}
"body.payerDocument" = {{ dictionary = "documents", probability = 0.6 }}
"""
# These two change the whole process; tests/contract calls them by hand.
LEFT_OUT = ("/sandbox/clock", "/sandbox/faults")


# One run for each family of paths, or the largest would take every step; and how many links it must follow.
FAMILIES = {
    "charges": ("^/(v1|sandbox)/charges", 5),
    "payouts": ("^/(v1|sandbox)/payouts", 5),
    "webhooks": ("^/v1/(account$|pix-accounts/)", 4),
    "statement": ("^/v1/(statement$|movements/)", 2),
    "admin": ("^/admin/", 2),
}


async def prepare(service: Service) -> dict[str, str]:
    limits = dict.fromkeys(("limitPerTransactionCents", "limitDailyCents", "limitNightCents"), "9" * 15)
    account = await service.new_account(balance_cents=50_000_000, **limits)
    receiver = await service.new_account()
    charge = await service.post("/v1/charges", receiver.api_key, {"variant": "simple", "amountCents": "100"})
    login = await service.request(
        "POST",
        "/authenticate",
        json={"document": account.document, "password": "correct horse battery"},
        headers={"X-Tenant-Id": account.tenant_id, "Accept": "application/json"},
    )
    await service.close()
    return {
        "account_id": account.pix_account_id,
        "api_key": account.api_key,
        "admin_token": service.admin_token,
        "login_token": login.body["token"],
        "code": charge.body["brCode"],
    }


class Fuzzed:
    """A service, and the command that sends requests to it."""

    def __init__(self, service: Service, directory: Path) -> None:
        self.service, self.directory = service, directory

    def run(self, name: str, *options: str) -> str:
        # An account of its own for each run: the same seed draws the same idempotency keys.
        values = asyncio.run(prepare(self.service))
        text = CONFIG.format(examples=EXAMPLES, scenarios=3 * EXAMPLES, **values)
        (self.directory / "schemathesis.toml").write_text(text)
        command = [str(Path(sys.executable).parent / "st"), "--config-file", "schemathesis.toml", "run"]
        command += [f"{self.service.url}/openapi.json", "--checks", "all", *options]
        command += ["--seed", SEED] if SEED else []
        command += ["--max-time", str(SECONDS)] if SECONDS else []
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            cwd=self.directory,
            timeout=900 + 2 * SECONDS,
            check=False,
        )
        (self.directory / f"{name}.txt").write_text(done.stdout)
        assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
        log = self.service.log_path.read_text()
        assert "request_failed" not in log
        assert "database_error" not in log
        return done.stdout


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    service = Service()
    service.start()
    yield Fuzzed(service, tmp_path_factory.mktemp("fuzz"))
    service.destroy()


def test_no_generated_request_breaks_the_service_or_its_description(fuzzed):
    left_out = [part for path in LEFT_OUT for part in ("--exclude-path", path)]
    fuzzed.run("requests", "--phases", "examples,coverage,fuzzing", *left_out)


@pytest.mark.parametrize("family", FAMILIES)
def test_no_chain_of_linked_requests_breaks_it_either(fuzzed, family):
    paths, links_min = FAMILIES[family]
    report = fuzzed.run(family, "--phases", "stateful", "--include-path-regex", paths)
    covered = int(re.search(r"API Links: +(\d+) covered", report)[1])
    assert covered >= links_min, report


def test_the_books_balance_after_all_that(fuzzed):
    code, report = fuzzed.service.check()
    assert code == 0, report
