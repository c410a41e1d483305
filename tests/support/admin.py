"""What the tests of the admin API create and read again and again."""

from validate_docbr import CPF


async def new_tenant(service, name="Tenant of a test"):
    reply = await service.admin("POST", "/admin/v1/tenants", {"name": name})
    assert reply.status == 201
    return reply.body["id"]


def person(**fields):
    return {
        "entityType": "PERSON",
        "name": "Maria da Silva",
        "document": CPF().generate(),
        "email": "Maria@Example.com",
        "phone": "+5511987654321",
        "password": "correct horse",
        **fields,
    }


async def new_entity(service, tenant_id, **fields):
    reply = await service.admin("POST", f"/admin/v1/tenants/{tenant_id}/entities", person(**fields))
    assert reply.status == 201, reply.body
    return reply.body


async def new_pix_account(service, **fields):
    tenant_id = await new_tenant(service)
    entity = await new_entity(service, tenant_id)
    body = {"entityId": entity["id"], **fields}
    reply = await service.admin("POST", f"/admin/v1/tenants/{tenant_id}/pix-accounts", body)
    assert reply.status == 201, reply.body
    return reply.body


def assert_refused(reply, status, code, param=None):
    assert (reply.status, reply.body["error"]["code"]) == (status, code), reply.body
    if param is not None:
        assert reply.body["error"]["param"] == param


async def walk(service, path, name, limit):
    """Read a list page by page to its end."""
    joint, rows, cursor = "&" if "?" in path else "?", [], ""
    while True:
        reply = await service.admin("GET", f"{path}{joint}limit={limit}{cursor}")
        assert reply.status == 200, reply.body
        assert 1 <= len(reply.body[name]) <= limit
        rows += reply.body[name]
        if reply.body["nextCursor"] is None:
            return rows
        cursor = f"&cursor={reply.body['nextCursor']}"
