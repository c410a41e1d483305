"""Settings and secrets of a start: read once from options, environment and the data directory."""

import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from lastro.config import Mode, Settings
from lastro.kit.sealing import Keyring, KeyringError, new_key

SECRETS_FILE = "secrets.json"
LIVE_NEEDS = {
    "LASTRO_PROVIDER": "the provider adapter, as package.module:factory",
    "LASTRO_ENCRYPTION_KEYS": "encryption keys, as id:base64[,id:base64]",
    "LASTRO_ADMIN_TOKEN": "the admin token, at least 32 characters",
    "LASTRO_BASE_URL": "the public base URL, https",
    "LASTRO_ISPB": "our ISPB, 8 digits",
    "LASTRO_BANK_NUMBER": "our bank number, 3 digits",
}


# Every setting of the environment; docs/reference/settings.md is printed from here, and a test holds it
# to the names that the code reads.
ENVIRONMENT = {
    "LASTRO_DATA_DIR": (".lastro", "where the embedded database, the sandbox's secrets and demo.json live"),
    "LASTRO_DATABASE_URL": ("an embedded PostgreSQL", "a PostgreSQL of yours; then the mode must be said"),
    "LASTRO_MODE": ("sandbox", "`sandbox` or `live`"),
    "LASTRO_BASE_URL": (
        "http://host:port",
        "the public address: image URLs, tokens and our own commands use it; live: https",
    ),
    "LASTRO_ADMIN_TOKEN": (
        "made at the first start (sandbox)",
        "the credential of the admin API; live: required",
    ),
    "LASTRO_ENCRYPTION_KEYS": (
        "made at the first start (sandbox)",
        "`id:base64[,id:base64]`: the first seals, the last is the root of derived keys and stays for ever",
    ),
    "LASTRO_PROVIDER": ("the sandbox", "`package.module:factory` of the provider adapter; live: required"),
    "LASTRO_ISPB": ("99999999", "our ISPB, 8 digits; live: required"),
    "LASTRO_BANK_NUMBER": ("999", "our bank number, 3 digits; live: required"),
    "LASTRO_BANK_NAME": ("Lastro Sandbox IP S.A.", "our legal name, shown to payers"),
    "LASTRO_CITY": ("SAO PAULO", "the city in QR codes"),
    "LASTRO_VALKEY_URL": ("none", "a Valkey that several API processes share for call limits"),
    "LASTRO_TRUSTED_PROXIES": ("none", "addresses of proxies whose X-Forwarded-For is believed, by comma"),
    "LASTRO_LOGIN_FAILURES_PER_MINUTE": ("10", "failed logins a minute for each document and address"),
    "LASTRO_LOGIN_CALLS_PER_MINUTE": ("600", "login calls a minute for each address"),
    "LASTRO_LANE_PER_ACCOUNT": ("0", "`1`: one lane for each account, for a database sharded by account"),
    "LASTRO_LOG_LEVEL": ("INFO", "DEBUG, INFO, WARNING or ERROR"),
    "LASTRO_PG_BINDIR": ("the wheel's binaries", "where `postgres` and `initdb` of the embedded server are"),
    "LASTRO_API_KEY": ("that of the demo", "for commands that call the API: the API key"),
    "LASTRO_ACCOUNT_ID": ("the API key's own", "for the same commands: the account, where there are several"),
    "LASTRO_CRASH_POINT": ("none", "for the crash suite: die at this named point"),
}


class StartError(Exception):
    """The service cannot start like this; the message says what to do."""


@dataclass(frozen=True)
class Start:
    """What the command line said."""

    host: str = "127.0.0.1"
    port: int = 8000
    auth_port: int | None = None
    data_dir: Path = Path(".lastro")
    database_url: str | None = None
    mode: Mode | None = None
    workers: bool = True


def read_settings(start: Start, database_url: str) -> tuple[Settings, Keyring]:
    """Put options, environment and stored secrets together, or say what is missing."""
    mode = start.mode or Mode.SANDBOX
    if mode is Mode.LIVE:
        _check_live()
    stored = {} if mode is Mode.LIVE else load_or_make_secrets(start.data_dir)
    keys = os.environ.get("LASTRO_ENCRYPTION_KEYS") or stored.get("encryptionKeys", "")
    try:
        keyring = Keyring.parse(keys)
    except KeyringError as error:
        raise StartError(f"LASTRO_ENCRYPTION_KEYS: {error}") from None
    base_url = os.environ.get("LASTRO_BASE_URL") or f"http://{_browsable(start.host)}:{start.port}"
    proxies = tuple(p.strip() for p in os.environ.get("LASTRO_TRUSTED_PROXIES", "").split(",") if p.strip())
    settings = Settings(
        mode=mode,
        database_url=database_url,
        base_url=base_url.rstrip("/"),
        data_dir=start.data_dir,
        admin_token=os.environ.get("LASTRO_ADMIN_TOKEN") or stored["adminToken"],
        host=start.host,
        port=start.port,
        auth_port=start.auth_port,
        ispb=os.environ.get("LASTRO_ISPB", Settings.ispb),
        bank_number=os.environ.get("LASTRO_BANK_NUMBER", Settings.bank_number),
        bank_name=os.environ.get("LASTRO_BANK_NAME", Settings.bank_name),
        city=os.environ.get("LASTRO_CITY", Settings.city),
        provider=os.environ.get("LASTRO_PROVIDER"),
        valkey_url=os.environ.get("LASTRO_VALKEY_URL"),
        trusted_proxies=proxies,
        login_failures_per_minute=_number("LASTRO_LOGIN_FAILURES_PER_MINUTE", 10),
        login_calls_per_minute=_number("LASTRO_LOGIN_CALLS_PER_MINUTE", 600),
        lane_per_account=os.environ.get("LASTRO_LANE_PER_ACCOUNT", "") == "1",
        workers=start.workers,
    )
    return settings, keyring


def _check_live() -> None:
    missing = [f"  {name}: {what}" for name, what in LIVE_NEEDS.items() if not os.environ.get(name)]
    if missing:
        raise StartError("Live mode needs these settings in the environment:\n" + "\n".join(missing))
    if len(os.environ["LASTRO_ADMIN_TOKEN"]) < 32:
        raise StartError("LASTRO_ADMIN_TOKEN must have at least 32 characters in live mode.")
    if not os.environ["LASTRO_BASE_URL"].startswith("https://"):
        raise StartError("LASTRO_BASE_URL must be an https URL in live mode.")
    for name, digits in (("LASTRO_ISPB", 8), ("LASTRO_BANK_NUMBER", 3)):
        value = os.environ[name]
        if not (value.isascii() and value.isdigit() and len(value) == digits):
            raise StartError(f"{name} must be {digits} digits.")


def load_or_make_secrets(data_dir: Path) -> dict[str, str]:
    """Return the sandbox's own secrets, made at its first start and kept for its owner only."""
    path = data_dir / SECRETS_FILE
    if path.exists():
        stored: dict[str, str] = json.loads(path.read_text("utf-8"))
        return stored
    data_dir.mkdir(parents=True, exist_ok=True)
    made = {"adminToken": f"lastro_admin_{secrets.token_urlsafe(32)}", "encryptionKeys": f"k1:{new_key()}"}
    write_private(path, json.dumps(made, indent=2))
    return made


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    draft = path.with_suffix(path.suffix + f".{os.getpid()}.tmp")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _browsable(host: str) -> str:
    return "127.0.0.1" if host in {"0.0.0.0", "::"} else host  # noqa: S104


def _number(name: str, default: int) -> int:
    text = os.environ.get(name, str(default))
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise StartError(f"{name} must be a whole number over zero, not {text!r}.")
    return int(text)
