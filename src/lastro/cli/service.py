"""The service that a command speaks to: found by options, environment or the sandbox's demo.json."""

import functools
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, ParamSpec, TypeVar

import click

from lastro.cli.show import Shape, show
from lastro.client import Lastro, LastroError, NoAnswer
from lastro.client.requests import Request

DEMO_FILE = "demo.json"
BASE_URL = "http://127.0.0.1:8000"

# What a program reads from the exit code; 0 is success.
NEGATIVE, USAGE, UNREACHABLE = 1, 2, 3

Given = ParamSpec("Given")
Result = TypeVar("Result")
Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass(frozen=True)
class Service:
    """A client of the service, and how its answers are shown."""

    client: Lastro
    base_url: str
    data_dir: Path
    as_json: bool

    def ask(self, request: Request[Any]) -> Any:  # noqa: ANN401  JSON of any shape
        """Send a request and return its answer as it came."""
        return self.client.send(request.as_json())

    def show(self, answer: Any, shape: Shape | None = None) -> None:  # noqa: ANN401
        """Print an answer: for a person, or as it came with --json."""
        show(answer, shape, as_json=self.as_json)


def with_service(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that find the service, and the service as its first argument."""

    @functools.wraps(command)
    def wrapped(
        api_key: str | None,
        account: str | None,
        base_url: str | None,
        data_dir: Path,
        *args: Any,  # noqa: ANN401
        as_json: bool,
        **kwargs: Any,  # noqa: ANN401
    ) -> Any:  # noqa: ANN401
        service = find_service(api_key, account, base_url, data_dir, as_json=as_json)
        return in_words(command)(service, *args, **kwargs)

    return _with_options(wrapped)


def _with_options(command: Command) -> Command:
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print the answer as it came, for programs."),
        DATA_DIR,
        click.option("--base-url", envvar="LASTRO_BASE_URL", help="Where the service answers."),
        click.option(
            "--account", envvar="LASTRO_ACCOUNT_ID", help="A Pix account's id; in a sandbox also 1 or 2."
        ),
        click.option("--api-key", envvar="LASTRO_API_KEY", help="The API key; else that of the demo."),
    ):
        command = option(command)
    return command


DATA_DIR = click.option(
    "--data-dir",
    envvar="LASTRO_DATA_DIR",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".lastro"),
    show_default=True,
    help="Where demo.json fills in what is not given.",
)


def find_service(
    api_key: str | None, account: str | None, base_url: str | None, data_dir: Path, *, as_json: bool = False
) -> Service:
    """Put together what was given and what demo.json says, or explain what is missing."""
    demo = load_demo(data_dir)
    if api_key is None:
        if demo is None:
            stop(
                f"There is no API key. Start a sandbox here (lastro serve), say --data-dir where one runs "
                f"({data_dir / DEMO_FILE} is missing), or give --api-key or LASTRO_API_KEY.",
                USAGE,
            )
        api_key, account = _demo_key(demo, account)
    url = base_url or (demo["baseUrl"] if demo else BASE_URL)
    try:
        # A person waits at the terminal: two quick tries more, not a minute of silence.
        client = Lastro(api_key, url, account_id=account, retries_max=2)
    except ValueError as error:
        stop(f"{error}.", USAGE)
    return Service(client, url.rstrip("/"), data_dir, as_json)


def _demo_key(demo: dict[str, Any], account: str | None) -> tuple[str, str | None]:
    """Choose the demo's API key for an account, named by its id or by its number."""
    accounts = demo["accounts"]
    if account is None:
        return accounts[0]["apiKey"], None
    if account.isascii() and account.isdigit() and 0 < int(account) <= len(accounts):
        return accounts[int(account) - 1]["apiKey"], None
    known = {one["pixAccountId"]: one["apiKey"] for one in accounts}
    return (known[account], None) if account in known else (demo["multiAccountApiKey"], account)


def load_demo(data_dir: Path) -> dict[str, Any] | None:
    """Read what the sandbox wrote at its start, or None where none ran."""
    try:
        demo: dict[str, Any] = json.loads((data_dir / DEMO_FILE).read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        stop(f"{data_dir / DEMO_FILE} cannot be read: {error}", USAGE)
    return demo


def find_admin(data_dir: Path, base_url: str | None, admin_token: str | None) -> Lastro:
    """Make a client with the admin token: the sandbox's clock and faults need it."""
    demo = load_demo(data_dir) or {}
    token = admin_token or demo.get("adminToken")
    if token is None:
        stop(
            f"There is no admin token: give --admin-token, or --data-dir ({data_dir} has no demo.json).",
            USAGE,
        )
    return Lastro(token, base_url or demo.get("baseUrl", BASE_URL), retries_max=0)


def in_words(command: Callable[Given, Result]) -> Callable[Given, Result]:
    """Let a command end in the service's words and with the exit code that programs look at."""

    @functools.wraps(command)
    def wrapped(*args: Given.args, **kwargs: Given.kwargs) -> Result:
        try:
            return command(*args, **kwargs)
        except NoAnswer as error:
            stop(f"{error.message}. Is it running? `lastro doctor` looks for the cause.", UNREACHABLE)
        except LastroError as error:
            stop(_words(error), NEGATIVE)
        except BrokenPipeError:
            raise  # `| head` has seen enough: click ends quietly
        except (ValueError, OSError) as error:
            stop(f"{error}.", USAGE)

    return wrapped


def _words(error: LastroError) -> str:
    text = str(error)
    if error.param and error.param not in error.message:
        text += f" [{error.param}]"
    details = ", ".join(f"{name}: {value}" for name, value in error.details.items())
    if details:
        text += f" [{details}]"
    if error.code == "pix_account_required":
        text += " Say --account."
    if error.retry_after_s and error.status == 429:
        text += f" Try again in {error.retry_after_s:g} s."
    return text


def stop(message: str, code: int) -> NoReturn:
    """End the command with words on standard error."""
    click.echo(f"lastro: {message}", err=True)
    sys.exit(code)
