"""The gates before every handler, in their fixed order: credential, account, rate, idempotency, shape."""

import hmac
from collections.abc import Iterable
from urllib.parse import parse_qsl

from lastro.accounts.model import Account
from lastro.api.call import Answer, Call
from lastro.api.exchange import Exchange
from lastro.api.routes import Auth, Rate, Select
from lastro.api.wire import BODY_MAX_BYTES, NoBody, parse, parse_form, shape
from lastro.idempotency.decide import Claim, Pending, Replay, fingerprint, judge
from lastro.idempotency.queries import load_stored
from lastro.identity.model import Principal
from lastro.identity.secrets import hash_api_key
from lastro.kit.errors import (
    Forbidden,
    IdempotencyInProgress,
    IdempotencyKeyRequired,
    InvalidIdempotencyKey,
    PayloadTooLarge,
    PixAccountRequired,
    RateLimited,
    Unauthorized,
    UnsupportedMediaType,
    ValidationError,
)
from lastro.limits.rates import effective_limit
from lastro.services import Services

ADDRESS_RATE = Rate("address", 6_000)
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
# Of these a proxy might read the first and we the last.
SAID_ONCE = {
    name.lower(): name
    for name in ("Authorization", "Content-Type", "Idempotency-Key", "X-Pix-Account-Id", "X-Tenant-Id")
}


def check_repeated(names: Iterable[str]) -> None:
    """Refuse a request in which a header that must say one thing stands twice."""
    for name in names:
        if name in SAID_ONCE:
            raise ValidationError(f"{SAID_ONCE[name]} must be given once.", param=SAID_ONCE[name])


async def authenticate(call: Call) -> None:
    """Gate one: who asks."""
    auth = call.route.auth
    if auth is Auth.OPEN:
        return
    scheme, _, credential = call.headers.get("authorization", "").partition(" ")
    credential = credential.strip()
    if scheme.lower() != "bearer" or not credential:
        raise Unauthorized
    if auth is Auth.ADMIN:
        call.principal = _operator(call, credential)
    elif auth is Auth.TOKEN:
        call.principal = await call.desk.read_token(credential)
    else:
        call.principal = await _holder_of_api_key(call, credential)


def _operator(call: Call, credential: str) -> Principal:
    expected = call.desk.services.settings.admin_token.encode()
    if not hmac.compare_digest(credential.encode(), expected):
        raise Unauthorized("Send the admin token in the Authorization header: Bearer <admin token>.")
    return Principal(name="admin")


async def _holder_of_api_key(call: Call, credential: str) -> Principal:
    principal = await call.desk.principals.get(hash_api_key(credential))
    if principal is None:
        raise Unauthorized
    return principal


async def select_account(call: Call) -> None:
    """Gate two: which account the request is for, and whether this credential reaches it."""
    if call.route.auth is not Auth.API_KEY or call.principal is None:
        return
    header = call.headers.get("x-pix-account-id")
    if header is not None and not 10 <= len(header) <= 40:
        raise ValidationError("X-Pix-Account-Id must have 10 to 40 characters.", param="X-Pix-Account-Id")
    account_id = _named_account(call, call.principal, header)
    if account_id not in call.principal.account_ids:
        raise Forbidden
    call.account = await call.desk.accounts.get(account_id)
    if call.account is None:
        raise Forbidden


def _named_account(call: Call, principal: Principal, header: str | None) -> str:
    """Return the account that path, query, header or the API key itself names."""
    if header is not None and header not in principal.account_ids:
        raise Forbidden
    if call.route.select is Select.PATH:
        return check_id(call.path[call.route.account_param], call.route.account_param)
    if call.route.select is Select.QUERY:
        named = [value for name, value in parse_qsl(call.query_string) if name == "pixAccountId"]
        if named:
            return check_id(named[0], "pixAccountId")
    if call.route.select is Select.BODY:
        given = parse(call.raw)
        named_here = given.get("pixAccountId") if isinstance(given, dict) else None
        if isinstance(named_here, str):
            return check_id(named_here, "pixAccountId")
    if header is None and (call.route.select is Select.HEADER_ALWAYS or len(principal.account_ids) != 1):
        raise PixAccountRequired(param="X-Pix-Account-Id")
    return header if header is not None else principal.account_ids[0]


def check_id(text: str, param: str) -> str:
    """Hold an id of a path or query to its bounds."""
    if not 10 <= len(text) <= 64 or "\x00" in text:
        raise ValidationError(f"{param} must have 10 to 64 characters.", param=param)
    return text


async def take_rate(call: Call) -> None:
    """Gate three: the allowance of the account, or of the address where there is no account."""
    rate = call.route.rate
    if call.account is not None:
        limit = effective_limit(rate.per_minute, call.account.rate_multiplier)
        allowance = await call.desk.rates.take(call.account.account_id, rate.label, limit)
    else:
        allowance = await call.desk.rates.take(call.client, rate.label, rate.per_minute)
    call.allowance = allowance
    if not allowance.allowed:
        raise RateLimited(retry_after_s=allowance.retry_after_s)


def read_idempotency_key(call: Call) -> None:
    """Gate four: the key that ties retries together."""
    key = call.headers.get("idempotency-key")
    if key is None:
        raise IdempotencyKeyRequired(param="Idempotency-Key")
    if not 8 <= len(key) <= 64 or not key.isascii() or not key.isprintable():
        raise InvalidIdempotencyKey(param="Idempotency-Key")
    call.key = key


async def read_body(call: Call, asked: Exchange) -> None:
    """Gate five, for a body that is still arriving: no more of it is kept than may be."""
    declared = call.headers.get("content-length", "0")
    if declared.isdigit() and int(declared) > BODY_MAX_BYTES:
        raise PayloadTooLarge
    take_body(call, await asked.read_body())


def take_body(call: Call, raw: bytes) -> None:
    """Gate five: the body's size and media type."""
    if len(raw) > BODY_MAX_BYTES:
        raise PayloadTooLarge
    call.raw = raw
    media_type = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    if call.raw and media_type != (FORM if call.route.form else JSON):
        raise UnsupportedMediaType


async def shape_body(call: Call) -> None:
    """Gate six: replay or conflict of a known key first, then the body's fields."""
    if call.route.form:
        call.body = parse_form(call.raw)
        return
    value = parse(call.raw)
    if call.route.idempotent:
        call.fingerprint = fingerprint(call.route.method, _path_of(call), value)
    try:
        call.body = shape(value, call.route.body or NoBody)
    except ValidationError:
        await raise_or_replay_known_key(call)
        raise


def _path_of(call: Call) -> str:
    path = call.route.path
    for name, value in call.path.items():
        path = path.replace(f"{{{name}}}", value)
    return path


class KnownAnswer(Exception):  # noqa: N818  not an error: a stored answer that goes back as it was
    """The key is known and answered: what the handler would do was done before."""

    def __init__(self, answer: Answer) -> None:
        super().__init__("replay")
        self.answer = answer


def replayed(services: Services, claim: Claim, replay: Replay) -> Answer:
    """Give a stored answer back, opened when it holds a secret."""
    body = replay.answer
    if replay.sealed:
        body = services.keyring.open(body, context=f"{claim.account_id}/{claim.key}".encode())
    return Answer(body, replay.status, headers=(("Idempotent-Replayed", "true"),))


async def raise_or_replay_known_key(call: Call, *, wait: bool = True) -> None:
    """Let a known key answer before anything else; `wait=False` leaves one without an answer to the lane."""
    if not call.route.idempotent or call.account is None:
        return
    claim = Claim(call.account_id, call.key, call.fingerprint, "")
    stored = await load_stored(call.desk.services.pool, call.account_id, call.key)
    verdict = judge(claim, stored)
    if isinstance(verdict, Replay):
        raise KnownAnswer(replayed(call.desk.services, claim, verdict))
    if isinstance(verdict, Pending) and wait:
        raise IdempotencyInProgress(retry_after_s=1)


def shape_query(call: Call) -> None:
    """Gate seven: the query's fields; unknown or repeated ones are refused."""
    pairs = parse_qsl(call.query_string, keep_blank_values=True) if call.query_string else []
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise ValidationError(f"{name} must be given once.", param=name)
        if "\x00" in value or "\x00" in name:
            raise ValidationError(
                "Parameters must not hold the NUL character.", param=name.replace("\x00", "")
            )
        values[name] = value
    if call.route.query is not None:
        # Read as JSON would be, the word null is an absent value; in a query it is a mistake.
        nothing = next((name for name, value in values.items() if value.lower() == "null"), None)
        if nothing is not None:
            raise ValidationError(f"{nothing} must have a value.", param=nothing)
        call.query = shape(values, call.route.query, lax=True)
    elif values:
        name = next(iter(values))
        raise ValidationError(f"Unknown parameter: {name}.", param=name)


def check_path(call: Call) -> None:
    """Gate eight: ids of the path keep their bounds (references and end-to-end ids have their own)."""
    for name, value in call.path.items():
        if name in {"externalRef", "reference"}:
            if not 1 <= len(value) <= 64 or "\x00" in value:
                raise ValidationError(f"{name} must have 1 to 64 characters.", param=name)
        elif name == "endToEndId":
            if len(value) != 32 or "\x00" in value:
                raise ValidationError("endToEndId must have 32 characters.", param=name)
        elif call.route.auth is Auth.API_KEY:
            check_id(value, name)


def account_of(call: Call) -> Account:
    """Return the selected account; only routes that select one call this."""
    if call.account is None:
        raise RuntimeError(f"{call.route.path} selects no account")
    return call.account
