"""`lastro admin`: the same verbs as the admin API, as a table or as JSON."""

import asyncio
import json

import pytest
from click.testing import CliRunner
from validate_docbr import CPF

from lastro.cli.admin import admin


@pytest.fixture
def run(service):
    """Run a command against the service, outside of the test's event loop."""

    async def run(*words, env=None):
        options = ["--base-url", service.url, "--admin-token", service.admin_token]
        result = await asyncio.to_thread(CliRunner().invoke, admin, [*options, *words], env=env)
        return result.exit_code, result.output

    return run


@pytest.fixture
def run_json(run):
    """Run a command that must succeed and return its answer."""

    async def run_json(*words):
        code, output = await run(*words, "--json")
        assert code == 0, output
        return json.loads(output)

    return run_json


async def test_an_account_is_opened_from_the_command_line(service, run_json):
    tenant = await run_json("tenants", "create", "--name", "Da linha de comando")
    person = [
        "--entity-type",
        "PERSON",
        "--name",
        "Rui",
        "--document",
        CPF().generate(),
        "--email",
        "r@example.com",
    ]
    entity = await run_json("entities", "create", tenant["id"], *person, "--password", "long enough")
    account = await run_json(
        "pix-accounts", "create", tenant["id"], "--entity-id", entity["id"], "--pix-out-fee-cents", "12"
    )
    assert account["pixOutFeeCents"] == "12"
    patched = await run_json("pix-accounts", "patch", account["id"], "--disabled", "--pix-in-fee-bps", "3")
    assert (patched["enabled"], patched["pixInFeeBps"], patched["pixOutFeeCents"]) == (False, 3, "12")
    blocked = await run_json("entities", "patch", entity["id"], "--status", "BLOCKED", "--has-pin")
    assert (blocked["status"], blocked["hasPin"]) == ("BLOCKED", True)
    drawn = await run_json("pix-keys", "create", account["id"], "--pix-key-type", "EVP")
    assert await run_json("pix-keys", "get", drawn["pixKey"]) == drawn
    assert len((await run_json("pix-keys", "list", account["id"]))["pixKeys"]) == 2

    api_key = await run_json("api-keys", "create", account["id"])
    assert (await service.request("GET", "/v1/account", key=api_key["apiKey"])).status == 200
    await run_json("api-keys", "revoke", api_key["id"])
    assert (await service.request("GET", "/v1/account", key=api_key["apiKey"])).status == 401

    listed = await run_json("pix-accounts", "list", "--tenant-id", tenant["id"], "--limit", "1")
    assert [row["id"] for row in listed["pixAccounts"]] == [account["id"]]
    trail = await run_json("audit", "--subject", account["id"])
    assert [row["action"] for row in trail["audit"]] == [
        "pix_key.create", "pix_account.patch", "pix_account.create",
    ]  # fmt: skip


async def test_people_get_a_table(service, run):
    account = await service.new_account()
    code, output = await run("tenants", "get", account.tenant_id)
    assert code == 0
    assert account.tenant_id in output
    code, output = await run("tenants", "list", "--limit", "1")
    assert code == 0
    assert "createdAt" in output


async def test_a_refusal_ends_the_command_in_the_services_words(run):
    code, output = await run("tenants", "get", "nobody")
    assert code == 1
    assert "404 not_found" in output
    code, output = await run("tenants", "create", "--name", " ")
    assert code == 1
    assert "name must have 1 to 200 characters. (400 validation_error" in output


async def test_what_is_not_said_comes_from_the_sandboxes_demo_file(service, tmp_path):
    words = ["--data-dir", str(tmp_path), "tenants", "list"]
    missing = await asyncio.to_thread(CliRunner().invoke, admin, words)
    assert missing.exit_code == 1
    assert "demo.json cannot be read" in missing.output
    (tmp_path / "demo.json").write_text(
        json.dumps({"baseUrl": service.url, "adminToken": service.admin_token})
    )
    found = await asyncio.to_thread(CliRunner().invoke, admin, words)
    assert found.exit_code == 0, found.output


async def test_a_service_that_is_away_is_said_to_be(tmp_path):
    words = ["--base-url", "http://127.0.0.1:9", "--admin-token", "x", "tenants", "list"]
    result = await asyncio.to_thread(CliRunner().invoke, admin, words)
    assert result.exit_code == 1
    assert "http://127.0.0.1:9 does not answer" in result.output
