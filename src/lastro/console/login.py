"""Coming in and going out: the login page, the session's cookie, language and theme."""

import base64
import binascii
import re
from functools import partial
from urllib.parse import parse_qs
from uuid import UUID

import msgspec

from lastro.api.call import Answer, Call
from lastro.console import session
from lastro.console.door import LoggedOut, Visitor, notice, open_visitor
from lastro.console.forms import Form
from lastro.console.pages import THEMES, local_path, look_of, redirect, render
from lastro.console.words import Language
from lastro.identity.login import LoginDesk, log_in
from lastro.identity.model import EntityStatus
from lastro.kit.documents import clean_document
from lastro.kit.errors import LastroError, TenantRequired
from lastro.kit.sealing import UnsealError
from lastro.sandbox.queries import LOAD_SETTING
from lastro.services import Services

DEMO = "demo"

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


class _DemoLogin(msgspec.Struct):
    document: str = ""


class _Demo(msgspec.Struct, rename="camel"):
    """The part of the demo's seed that the login page fills in; never the password."""

    tenant_id: str = ""
    login: _DemoLogin = msgspec.field(default_factory=_DemoLogin)


async def _load_demo(services: Services) -> _Demo:
    stored = await services.pool.fetchval(LOAD_SETTING, DEMO) if services.settings.sandbox else None
    if stored is None:
        return _Demo()
    try:
        opened = services.keyring.open(base64.b64decode(stored), context=DEMO.encode())
        return msgspec.json.decode(opened, type=_Demo)
    except (binascii.Error, UnsealError, msgspec.MsgspecError):
        return _Demo()


async def get_home(call: Call) -> Answer:
    """GET /: the login, or on to the first account."""
    try:
        visitor = await open_visitor(call)
    except LoggedOut:
        return await _login_page(call)
    return _welcome(visitor)


def _welcome(visitor: Visitor) -> Answer:
    if visitor.entity.status == EntityStatus.BLOCKED:
        return notice(visitor, "blocked")
    if not visitor.accounts:
        return notice(visitor, "no_accounts")
    return redirect(f"/console/{visitor.accounts[0].account_id}")


async def _login_page(call: Call, form: Form | None = None, error: LastroError | None = None) -> Answer:
    services = call.desk.services
    demo = await _load_demo(services)
    query = {name: values[0] for name, values in parse_qs(call.query_string).items()}
    following = form.raw("next") if form else query.get("next", "")
    answer = render(
        call,
        look_of(call),
        "login.html",
        status=error.status if error else 200,
        tenant=form.raw("tenant") if form else demo.tenant_id,
        document=form.raw("document") if form else demo.login.document,
        following=local_path(following),
        over="over" in query,
        error=error,
    )
    if error is not None and error.retry_after_s is not None:
        answer.headers = (*answer.headers, ("Retry-After", str(max(1, round(error.retry_after_s)))))
    return answer


async def post_login(login: LoginDesk, call: Call) -> Answer:
    """POST /console/login: the same check, throttle and timing as POST /authenticate."""
    services = call.desk.services
    form = Form(call.body, look_of(call).language)
    try:
        session.check_origin(call.headers, services.settings.base_url)
        tenant = form.raw("tenant")
        if not _UUID.fullmatch(tenant):
            raise TenantRequired(param="tenant")
        entity = await log_in(
            services,
            login,
            UUID(tenant),
            document=clean_document(form.raw("document")),
            password=form.fields.get("password", [""])[0],
            client=call.client,
        )
    except LastroError as error:
        return await _login_page(call, form, error)
    sealed = session.seal(services, session.new_session(entity.entity_id))
    cookie = session.write_cookie(services, session.SESSION_COOKIE, sealed, age_s=session.LIFETIME_S)
    return redirect(local_path(form.raw("next")), cookie)


async def get_login(_: Call) -> Answer:
    """GET /console/login: the login lives at /."""
    return redirect("/")


async def post_logout(call: Call) -> Answer:
    """POST /console/logout."""
    services = call.desk.services
    try:
        visitor = await open_visitor(call)
        session.check_csrf(services, visitor.session, Form(call.body, visitor.look.language).raw("csrf"))
    except LoggedOut:
        pass
    except LastroError as error:
        return render(call, look_of(call), "trouble.html", status=error.status, error=error)
    return redirect("/", session.write_cookie(services, session.SESSION_COOKIE, "", age_s=0))


async def post_preferences(call: Call) -> Answer:
    """POST /console/preferences: language or theme, kept in a cookie; works before the login, too."""
    services = call.desk.services
    look = look_of(call)
    form = Form(call.body, look.language)
    keep = partial(session.write_cookie, services, age_s=session.PREFERENCE_S)
    cookies = []
    try:
        session.check_origin(call.headers, services.settings.base_url)
        if form.raw("language"):
            cookies.append(keep(session.LANGUAGE_COOKIE, form.choice("language", frozenset(Language))))
        if form.raw("theme"):
            cookies.append(keep(session.THEME_COOKIE, form.choice("theme", frozenset(THEMES))))
    except LastroError as error:
        return render(call, look, "trouble.html", status=error.status, error=error)
    return redirect(local_path(form.raw("back")), *cookies)
