"""Admin routes of API keys and of the audit trail."""

from typing import Any

import msgspec

from lastro.api.admin_wire import (
    PageQuery,
    actor,
    admin_route,
    cut,
    filters_of,
    id_position,
    page_limit,
    path_id,
    put_in_force,
)
from lastro.api.call import Call
from lastro.api.routes import Route
from lastro.api.wire import ApiStruct, RequestStruct
from lastro.identity import actions, queries
from lastro.identity.model import ApiKey
from lastro.kit.clock import brt, brt_or_none
from lastro.kit.errors import InvalidCursor, NotFound, ValidationError
from lastro.kit.page import write_cursor


class NewApiKey(RequestStruct):
    """The accounts of one tenant that a new API key shall reach."""

    pix_account_ids: list[str]


class ApiKeyAnswer(ApiStruct):
    """An API key as it may be shown at any time."""

    id: str
    preview: str
    tenant_id: str
    pix_account_ids: list[str]
    created_at: str
    revoked_at: str | None


class CreatedApiKey(ApiKeyAnswer):
    """The one answer that holds an API key's text."""

    api_key: str


class RevokedApiKey(ApiStruct):
    """An API key that is no longer good."""

    id: str
    revoked_at: str


class ApiKeyList(ApiStruct):
    """API keys, newest first."""

    api_keys: list[ApiKeyAnswer]
    next_cursor: str | None


class AuditQuery(PageQuery):
    """A page of the audit trail, of one subject or of all."""

    subject: str | None = None


class AuditAnswer(ApiStruct):
    """One deed: who, what, on what, and the changed values before and after."""

    id: str
    actor: str
    action: str
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    at: str


class AuditList(ApiStruct):
    """Deeds, newest first."""

    audit: list[AuditAnswer]
    next_cursor: str | None


def _fields(api_key: ApiKey) -> dict[str, Any]:
    return {
        "id": api_key.api_key_id,
        "preview": api_key.preview,
        "tenant_id": str(api_key.tenant_id),
        "pix_account_ids": list(api_key.account_ids),
        "created_at": brt(api_key.created_at),
        "revoked_at": brt_or_none(api_key.revoked_at),
    }


async def create_api_key(call: Call) -> CreatedApiKey:
    """POST /admin/v1/api-keys."""
    account_ids = call.body.pix_account_ids
    api_key, text = await actions.create_api_key(call.desk.services, account_ids, actor=actor(call))
    put_in_force(call)
    return CreatedApiKey(**_fields(api_key), api_key=text)


async def list_api_keys(call: Call) -> ApiKeyList:
    """GET /admin/v1/api-keys."""
    limit, filters = page_limit(call.query), filters_of("api-keys")
    before = id_position(call.query.cursor, filters)
    page, last = cut(await queries.list_api_keys(call.desk.services.pool, before, limit + 1), limit)
    cursor = write_cursor((last.api_key_id,), filters) if last else None
    return ApiKeyList(api_keys=[ApiKeyAnswer(**_fields(api_key)) for api_key in page], next_cursor=cursor)


async def get_api_key(call: Call) -> ApiKeyAnswer:
    """GET /admin/v1/api-keys/{id}."""
    api_key = await queries.load_api_key(call.desk.services.pool, path_id(call, "id"))
    if api_key is None:
        raise NotFound("There is no such API key.", param="id")
    return ApiKeyAnswer(**_fields(api_key))


async def revoke_api_key(call: Call) -> RevokedApiKey:
    """DELETE /admin/v1/api-keys/{id}."""
    api_key = await actions.revoke_api_key(call.desk.services, path_id(call, "id"), actor=actor(call))
    put_in_force(call)
    return RevokedApiKey(id=api_key.api_key_id, revoked_at=brt_or_none(api_key.revoked_at) or "")


async def list_audit(call: Call) -> AuditList:
    """GET /admin/v1/audit."""
    limit, filters = page_limit(call.query), filters_of("audit", subject=call.query.subject)
    before = id_position(call.query.cursor, filters)
    rows = await queries.list_audit(call.desk.services.pool, call.query.subject, before, limit + 1)
    page, last = cut(rows, limit)
    cursor = write_cursor((last.audit_id,), filters) if last else None
    return AuditList(audit=[_audit_answer(audit) for audit in page], next_cursor=cursor)


def _audit_answer(audit: queries.Audit) -> AuditAnswer:
    return AuditAnswer(
        id=audit.audit_id,
        actor=audit.actor,
        action=audit.action,
        subject=audit.subject,
        before=None if audit.before is None else msgspec.json.decode(audit.before),
        after=None if audit.after is None else msgspec.json.decode(audit.after),
        at=brt(audit.at),
    )


_LIST_ERRORS = (ValidationError, InvalidCursor)

ROUTES: list[Route] = [
    admin_route(
        "POST", "/api-keys", create_api_key, "Create an API key",
        body=NewApiKey, answer=CreatedApiKey, errors=(ValidationError, NotFound),
    ),
    admin_route(
        "GET", "/api-keys", list_api_keys, "List API keys",
        query=PageQuery, answer=ApiKeyList, errors=_LIST_ERRORS,
    ),
    admin_route(
        "GET", "/api-keys/{id}", get_api_key, "Read an API key", answer=ApiKeyAnswer, errors=(NotFound,)
    ),
    admin_route(
        "DELETE", "/api-keys/{id}", revoke_api_key, "Revoke an API key",
        answer=RevokedApiKey, errors=(NotFound,),
    ),
    admin_route(
        "GET", "/audit", list_audit, "Read the audit trail",
        query=AuditQuery, answer=AuditList, errors=_LIST_ERRORS,
    ),
]  # fmt: skip
