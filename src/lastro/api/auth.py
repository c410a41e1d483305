"""Logging in: POST /authenticate, GET /me and the public keys of our tokens."""

import re
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from lastro.accounts.queries import AccountView, list_account_views_of_entity, sum_spent
from lastro.api.call import Call
from lastro.api.routes import Auth, Rate, Route, Select
from lastro.api.wire import ApiStruct, RequestStruct
from lastro.identity.login import LoginDesk, log_in
from lastro.identity.model import Entity, EntityStatus, Principal
from lastro.identity.queries import load_entity
from lastro.kit.clock import Clock, day_of, start_of_day
from lastro.kit.errors import (
    InvalidCredentials,
    NotAcceptable,
    TenantRequired,
    Unauthorized,
    UnsupportedMediaType,
    ValidationError,
)
from lastro.services import Services

READS_PER_MINUTE = 300

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class Login(RequestStruct):
    """Who logs in: a CPF or CNPJ without punctuation, and the password in this tenant."""

    document: str
    password: str


class EntityAnswer(ApiStruct):
    """The person or company that logged in."""

    id: str
    email: str
    email_confirmation: bool
    phone: str | None
    phone_confirmation: bool
    name: str
    document: str
    status: str
    onboarding_step: str
    onboarding_link: str | None
    onboarding_requisition_id: int | None
    has_pin: bool


class AccountAnswer(ApiStruct):
    """An account of it; amounts are JSON numbers in reais."""

    id: str
    bank: str
    agency: str
    number: str
    balance: float
    status: str
    monthly_goal: float
    monthly_spending: float
    savings_progress: float


class MeAnswer(ApiStruct):
    """An entity and its accounts."""

    entity_type: str
    entity: EntityAnswer
    accounts: list[AccountAnswer]


class LoginAnswer(MeAnswer, kw_only=True):
    """The same with the token that opens `GET /me` for an hour."""

    token: str


# --- handlers -------------------------------------------------------------------------------------


async def authenticate(login: LoginDesk, call: Call) -> LoginAnswer:
    """POST /authenticate."""
    tenant_id = _tenant_id(call.headers.get("x-tenant-id"))
    _check_accept(call.headers.get("accept"))
    body: Login = call.body
    services = call.desk.services
    entity = await log_in(
        services, login, tenant_id, document=body.document, password=body.password, client=call.client
    )
    me = await _me(services, entity)
    token = login.tokens.issue(
        subject=str(entity.entity_id), tenant_id=str(entity.tenant_id), at=Clock.real()
    )
    return LoginAnswer(entity_type=me.entity_type, entity=me.entity, accounts=me.accounts, token=token)


async def get_me(call: Call) -> MeAnswer:
    """GET /me."""
    if call.principal is None or call.principal.entity_id is None:
        raise Unauthorized
    entity = await load_entity(call.desk.services.pool, call.principal.entity_id)
    if entity is None:
        raise Unauthorized
    return await _me(call.desk.services, entity)


async def get_jwks(login: LoginDesk, _: Call) -> dict[str, Any]:
    """GET /.well-known/jwks.json."""
    return login.tokens.jwks()


async def read_token(services: Services, login: LoginDesk, token: str) -> Principal:
    """Return who a token stands for, as long as that entity is there and not CLOSED."""
    claims = login.tokens.verify(token, at=Clock.real())
    entity = (
        await load_entity(services.pool, UUID(claims.subject)) if _UUID.fullmatch(claims.subject) else None
    )
    if entity is None or entity.status == EntityStatus.CLOSED or str(entity.tenant_id) != claims.tenant_id:
        raise Unauthorized("The token is not valid. Log in again.")
    return Principal(f"entity {entity.entity_id}", (), entity.tenant_id, entity.entity_id)


# --- checks ---------------------------------------------------------------------------------------


def _tenant_id(header: str | None) -> UUID:
    if header is None or not _UUID.fullmatch(header):
        raise TenantRequired(param="X-Tenant-Id")
    return UUID(header)


def _check_accept(header: str | None) -> None:
    """Refuse a caller that names no media type, or none that we can send."""
    if header is None or not header.strip():
        raise ValidationError("Send the header Accept: application/json.", param="Accept")
    if not accepts_json(header):
        raise NotAcceptable(param="Accept")


def accepts_json(accept: str) -> bool:
    """Tell whether an Accept header takes JSON: the most specific range that fits decides."""
    best, accepted = -1, False
    for item in accept.split(","):
        media_range, *parameters = (part.strip().lower() for part in item.split(";"))
        rank = {"*/*": 0, "application/*": 1, "application/json": 2}.get(media_range, -1)
        if rank > best:
            best, accepted = rank, not any(re.fullmatch(r"q=0(\.0*)?", part) for part in parameters)
    return accepted


# --- answers --------------------------------------------------------------------------------------


async def _me(services: Services, entity: Entity) -> MeAnswer:
    views = await list_account_views_of_entity(services.pool, entity.entity_id)
    from_at, to_at = month_of(services.clock.now())
    account_ids = [view.account.account_id for view in views]
    spent = await sum_spent(services.pool, account_ids, from_at=from_at, to_at=to_at)
    bank = services.settings.bank_number
    return MeAnswer(
        entity_type=entity.entity_type,
        entity=_entity_answer(entity),
        accounts=[_account_answer(view, bank, spent[view.account.account_id]) for view in views],
    )


def _entity_answer(entity: Entity) -> EntityAnswer:
    return EntityAnswer(
        id=str(entity.entity_id),
        email=entity.email,
        email_confirmation=entity.email_confirmation,
        phone=entity.phone,
        phone_confirmation=entity.phone_confirmation,
        name=entity.name,
        document=entity.document,
        status=entity.status,
        onboarding_step=entity.onboarding_step,
        onboarding_link=entity.onboarding_link,
        onboarding_requisition_id=entity.onboarding_requisition_id,
        has_pin=entity.has_pin,
    )


def _account_answer(view: AccountView, bank: str, spent_cents: int) -> AccountAnswer:
    account = view.account
    return AccountAnswer(
        id=str(account.core_account_id),
        bank=bank,
        agency=account.branch,
        number=account.account_number,
        balance=reais(view.balance_cents),
        status=account.status,
        monthly_goal=reais(account.monthly_goal_cents),
        monthly_spending=reais(spent_cents),
        savings_progress=savings_progress(account.monthly_goal_cents, spent_cents),
    )


def reais(cents: int) -> float:
    """Return the number that prints as these cents in reais: exact to 15 digits, as far as amounts go."""
    return cents / 100


def savings_progress(goal_cents: int, spent_cents: int) -> float:
    """Return the share of the month's goal that is not spent yet, 0 to 1; 0 where there is no goal."""
    return round(max(0, goal_cents - spent_cents) / goal_cents, 4) if goal_cents else 0.0


def month_of(at: datetime) -> tuple[datetime, datetime]:
    """Return the first instant of the month in Sao Paulo, and of the month after it."""
    first = day_of(at).replace(day=1)
    following = (
        first.replace(year=first.year + 1, month=1)
        if first.month == 12
        else first.replace(month=first.month + 1)
    )
    return start_of_day(first), start_of_day(following)


def routes(login: LoginDesk) -> list[Route]:
    """Return the rows of the login."""
    return [
        Route(
            "POST", "/authenticate", partial(authenticate, login), "Log in with document and password",
            Rate("POST /authenticate", login.calls_per_minute),
            auth=Auth.OPEN, select=Select.NONE, body=Login, answer=LoginAnswer, tag="Login",
            errors=(ValidationError, TenantRequired, InvalidCredentials, NotAcceptable, UnsupportedMediaType),
        ),
        Route(
            "GET", "/me", get_me, "Read the logged-in entity and its accounts",
            Rate("GET /me", READS_PER_MINUTE),
            auth=Auth.TOKEN, select=Select.NONE, answer=MeAnswer, tag="Login",
        ),
        Route(
            "GET", "/.well-known/jwks.json", partial(get_jwks, login), "Read the public keys of the tokens",
            Rate("GET /.well-known/jwks.json", READS_PER_MINUTE),
            auth=Auth.OPEN, select=Select.NONE, answer=dict[str, Any], tag="Login",
        ),
    ]  # fmt: skip
