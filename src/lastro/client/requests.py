"""Requests as values: built once, so that every retry sends the same bytes and the same key."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from typing import Any, Generic, Protocol, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from lastro.client.errors import LastroError, UnreadableAnswer, error_of

Answer = TypeVar("Answer")
Answer_co = TypeVar("Answer_co", covariant=True)
Item_co = TypeVar("Item_co", covariant=True)

ACCOUNT = "{account}"  # stands in a path where the account's id belongs
USER_AGENT = "lastro-python"

_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


class Page(Protocol[Item_co]):
    """A part of a list, and where the next part begins."""

    @property
    def items(self) -> Sequence[Item_co]:
        """The rows of this page."""

    @property
    def next_cursor(self) -> str | None:
        """Where the next page begins, or None on the last one."""


@dataclass(frozen=True)
class Request(Generic[Answer_co]):
    """One call of the API: everything that does not depend on who makes it."""

    method: str
    path: str
    answer: type[Answer_co]
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    idempotency_key: str | None = None
    names_account: bool = False  # X-Pix-Account-Id is required, also for an API key of one account

    @property
    def repeatable(self) -> bool:
        """Tell whether sending it twice is as good as once."""
        return self.method == "GET" or self.idempotency_key is not None

    @property
    def needs_account(self) -> bool:
        """Tell whether the account's id must be known before it can be sent."""
        return self.names_account or ACCOUNT in self.path

    def after(self, cursor: str) -> "Request[Answer_co]":
        """Return the request for the next page."""
        return replace(self, query={**self.query, "cursor": cursor})

    def as_json(self) -> "Request[dict[str, Any]]":
        """Return the same request with an untyped answer: every field as it came."""
        plain: Any = replace(self, answer=dict)  # type: ignore[arg-type]
        return plain  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Sender:
    """Who asks: the credential, the account it asks for, and where the service is."""

    api_key: str = field(repr=False)
    base_url: str
    account_id: str | None = None

    def __post_init__(self) -> None:
        if not self.base_url.startswith(("http://", "https://")):
            raise ValueError(f"base_url must begin with http:// or https://, not {self.base_url!r}")
        if not self.api_key or not self.api_key.isascii() or not self.api_key.isprintable():
            raise ValueError("api_key must be printable ASCII; `lastro demo` shows those of a sandbox")


def get(path: str, answer: type[Answer], *, names_account: bool = False, **query: object) -> Request[Answer]:
    """Build a GET; parameters that are None are left out."""
    return Request("GET", path, answer, query=_query(query), names_account=names_account)


def post(
    path: str, answer: type[Answer], *, idempotency_key: str | None = None, **fields: object
) -> Request[Answer]:
    """Build a POST with its Idempotency-Key, drawn here when none is given."""
    key = idempotency_key or str(uuid.uuid4())
    return Request("POST", path, answer, body=_body(fields), idempotency_key=key)


def change(method: str, path: str, answer: type[Answer], **fields: object) -> Request[Answer]:
    """Build a change that knows no Idempotency-Key, and is therefore never repeated by itself."""
    return Request(method, path, answer, body=None if method == "DELETE" else _body(fields))


def part(text: str) -> str:
    """Write a value as one part of a path."""
    return quote(text, safe="")


def _query(given: Mapping[str, object]) -> dict[str, str]:
    return {_camel(name): _text(value) for name, value in given.items() if value is not None}


def _body(given: Mapping[str, object]) -> bytes:
    fields = {_camel(name): _wire(name, value) for name, value in given.items() if value is not None}
    return msgspec.json.encode(fields)


def _wire(name: str, value: object) -> object:
    """Write a value as the API takes it: money as a string of digits, instants in UTC."""
    if name.endswith("_cents"):
        return str(value)
    return _text(value) if isinstance(value, date) else value


def _text(value: object) -> str:
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise ValueError("an instant needs a time zone: datetime.now(UTC), not datetime.now()")
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, date) else str(value)


def _camel(name: str) -> str:
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(word.capitalize() for word in rest)


# --- on the wire ------------------------------------------------------------------------------------


def target(request: Request[Any], account_id: str | None) -> str:
    """Return path and query."""
    path = request.path.replace(ACCOUNT, part(account_id or ""))
    return f"{path}?{urlencode(request.query)}" if request.query else path


def headers(request: Request[Any], sender: Sender, account_id: str | None) -> dict[str, str]:
    """Return the headers of a request."""
    named = {"Authorization": f"Bearer {sender.api_key}", "Accept": "*/*", "User-Agent": USER_AGENT}
    account = account_id if request.names_account else sender.account_id
    if account is not None:
        named["X-Pix-Account-Id"] = account
    if request.body is not None:
        named["Content-Type"] = "application/json"
    if request.idempotency_key is not None:
        named["Idempotency-Key"] = request.idempotency_key
    return named


def read(request: Request[Answer], status: int, retry_after: str | None, body: bytes) -> Answer:
    """Give an answer its type, or raise what it says."""
    if not 200 <= status < 300:
        raise failure(status, retry_after, body)
    decoder = _decoders.get(request.answer)
    if decoder is None:
        # Not strict: the API writes cents as strings, a program wants numbers.
        decoder = _decoders[request.answer] = msgspec.json.Decoder(request.answer, strict=False)
    try:
        answer: Answer = decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UnreadableAnswer(
            f"{request.method} {request.path} answered {status} with something else: {error}",
            code="unreadable_answer",
            status=status,
        ) from error
    return answer


def failure(status: int, retry_after: str | None, body: bytes) -> LastroError:
    """Read an answer other than success."""
    waits = retry_after is not None and retry_after.isascii() and retry_after.isdigit()
    return error_of(status, body, retry_after_s=float(retry_after) if waits and retry_after else None)
