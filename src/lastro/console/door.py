"""The door of the console: who may come in, to which account, and what a refusal looks like."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote

from lastro.accounts.model import Account
from lastro.accounts.queries import list_accounts_of_entity
from lastro.api.call import Answer, Call
from lastro.console import session
from lastro.console.forms import Form, new_key
from lastro.console.pages import Look, local_path, look_of, place_of, redirect, render
from lastro.console.queries import load_version
from lastro.identity.model import Entity, EntityStatus
from lastro.identity.queries import load_entity
from lastro.kit.errors import Forbidden, LastroError, NotFound, RateLimited
from lastro.limits.rates import effective_limit
from lastro.services import Services

_ID = re.compile(r"[0-9A-Za-z_]{10,64}")


class LoggedOut(Exception):  # noqa: N818  no error: the visitor is shown the login
    """Nobody is logged in, or no longer."""


@dataclass(frozen=True)
class Visitor:
    """Somebody who is logged in, and the accounts that are theirs."""

    call: Call
    look: Look
    session: session.Session
    entity: Entity
    accounts: list[Account]


@dataclass(frozen=True)
class Visit:
    """A visitor who looks at one of their accounts: what every page handler gets."""

    visitor: Visitor
    account: Account
    form: Form
    query: dict[str, str] = field(default_factory=dict)

    @property
    def call(self) -> Call:
        """Return the request."""
        return self.visitor.call

    @property
    def services(self) -> Services:
        """Return the services."""
        return self.visitor.call.desk.services

    @property
    def actor(self) -> str:
        """Return the name that audit rows show."""
        return f"entity {self.visitor.entity.entity_id}"

    @property
    def base(self) -> str:
        """Return the path under which the pages of this account live."""
        return f"/console/{self.account.account_id}"

    async def take(self, label: str) -> None:
        """Count a call against the account's allowance of an API route: it is the same whoever asks."""
        desk = self.call.desk
        rate = next(route.rate for route in desk.routes if route.rate.label == label)
        limit = effective_limit(rate.per_minute, self.account.rate_multiplier)
        allowance = await desk.rates.take(self.account.account_id, label, limit)
        if not allowance.allowed:
            raise RateLimited(retry_after_s=allowance.retry_after_s)

    def id(self, name: str = "id") -> str:
        """Return an id of the path; one that no record can have leads nowhere."""
        text = self.call.path[name]
        if not _ID.fullmatch(text):
            raise NotFound
        return text

    def go(self, path: str, *, done: str = "") -> Answer:
        """Send the browser on to a page of this account, with a word of what was done."""
        return redirect(f"{self.base}{path}{f'?done={done}' if done else ''}")

    async def page(self, template: str, /, *, status: int = 200, **values: Any) -> Answer:  # noqa: ANN401
        """Render a page of this account."""
        services, visitor = self.services, self.visitor
        return render(
            self.call,
            visitor.look,
            template,
            status=status,
            entity=visitor.entity,
            accounts=visitor.accounts,
            account=self.account,
            base=self.base,
            csrf=session.csrf_token(services, visitor.session),
            new_key=new_key,
            done=self.query.get("done", ""),
            version=await load_version(services.pool, self.account.account_id),
            **values,
        )


Handler = Callable[[Visit], Awaitable[Answer]]


async def open_visitor(call: Call) -> Visitor:
    """Return who is logged in."""
    services = call.desk.services
    cookies = session.read_cookies(call.headers.get("cookie", ""))
    found = session.unseal(services, cookies.get(session.SESSION_COOKIE))
    entity = await load_entity(services.pool, found.entity_id) if found else None
    if found is None or entity is None or entity.status == EntityStatus.CLOSED:
        raise LoggedOut
    accounts = await list_accounts_of_entity(services.pool, entity.entity_id)
    return Visitor(call, look_of(call), found, entity, accounts)


def visited(handler: Handler) -> Callable[[Call], Awaitable[Answer]]:
    """Let a handler see only visitors who are logged in, and only their own accounts."""

    async def answer(call: Call) -> Answer:
        look = look_of(call)
        try:
            visitor = await open_visitor(call)
            if call.route.method == "POST":
                _check_form(visitor)
            if visitor.entity.status == EntityStatus.BLOCKED:
                return notice(visitor, "blocked", status=403)
            return await handler(_visit(visitor))
        except LoggedOut:
            return redirect(_way_in(call))
        except LastroError as error:
            return render(call, look, "trouble.html", status=error.status, error=error)

    return answer


def _way_in(call: Call) -> str:
    """Return the login that leads back here; after a form, to its account, saying that it was not sent."""
    is_form = call.route.method != "GET"
    back = local_path(f"/console/{call.path['account']}" if is_form else place_of(call))
    return f"/?{'over=1&' if is_form else ''}next={quote(back, safe='/')}"


def _check_form(visitor: Visitor) -> None:
    call = visitor.call
    services = call.desk.services
    session.check_origin(call.headers, services.settings.base_url)
    session.check_csrf(services, visitor.session, Form(call.body, visitor.look.language).raw("csrf"))


def _visit(visitor: Visitor) -> Visit:
    call = visitor.call
    account = next((a for a in visitor.accounts if a.account_id == call.path["account"]), None)
    if account is None:
        raise Forbidden("This account is not one of yours.")
    form = Form(call.body if call.route.form else {}, visitor.look.language)
    query = {name: values[0] for name, values in parse_qs(call.query_string).items()}
    return Visit(visitor, account, form, query)


def notice(visitor: Visitor, reason: str, *, status: int = 200) -> Answer:
    """Show the one page that a visitor without a usable account gets."""
    services = visitor.call.desk.services
    csrf = session.csrf_token(services, visitor.session)
    return render(
        visitor.call,
        visitor.look,
        "notice.html",
        status=status,
        reason=reason,
        csrf=csrf,
        entity=visitor.entity,
    )
