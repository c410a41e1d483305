"""The ground that every start needs: the root key's mark, the suspense account, and the sandbox's demo."""

import base64
import json
import secrets
from uuid import UUID

import msgspec

from lastro.accounts.model import Account, AccountStatus
from lastro.accounts.queries import insert_account, load_account
from lastro.charges.receive import RECEIVE, SUSPENSE_ID
from lastro.identity.actions import create_api_key, create_entity, create_pix_account, create_tenant
from lastro.identity.passwords import Passwords
from lastro.kit.ids import alphanumeric
from lastro.ledger.model import GENESIS_HASH
from lastro.ledger.queries import INSERT_BALANCE
from lastro.provider.port import Credit
from lastro.sandbox.actions import invent_payer
from lastro.sandbox.queries import LOAD_SETTING, PUT_SETTING
from lastro.services import Services
from lastro.startup import StartError, write_private

NOBODY = UUID(int=0)
DEMO = "demo"
DEMO_FILE = "demo.json"
DEMO_CENTS = 1_000_000
DEMO_DOCUMENT = "52998224725"
ROOT_MARK = "keyring.root"


async def ensure_ground(services: Services) -> None:
    """Check that the root key is the one this database began with, and that the suspense account exists."""
    mark = await services.pool.fetchval(LOAD_SETTING, ROOT_MARK)
    if mark is None:
        await services.pool.execute(PUT_SETTING, ROOT_MARK, services.keyring.root_fingerprint)
    elif mark != services.keyring.root_fingerprint:
        raise StartError(
            "The oldest encryption key is not the one this database was started with. "
            "Put it back as the last of LASTRO_ENCRYPTION_KEYS: references to the provider derive from it."
        )
    if await load_account(services.pool, SUSPENSE_ID) is None:
        await _insert_suspense(services)


async def _insert_suspense(services: Services) -> None:
    now = services.clock.now()
    account = Account(
        account_id=SUSPENSE_ID,
        short_code="suspense",
        tenant_id=NOBODY,
        entity_id=NOBODY,
        core_account_id=NOBODY,
        branch="0001",
        account_number="00000000",
        label="SUSPENSE",
        enabled=False,
        status=AccountStatus.APPROVED,
        pix_in_fee_cents=0,
        pix_in_fee_bps=0,
        pix_out_fee_cents=0,
        pix_out_fee_bps=0,
        limit_per_transaction_cents=0,
        limit_daily_cents=0,
        limit_night_cents=0,
        rate_multiplier=1,  # type: ignore[arg-type]
        monthly_goal_cents=0,
        created_at=now,
        updated_at=now,
    )
    async with services.pool.acquire() as connection, connection.transaction():
        if await insert_account(connection, account):
            await connection.execute(INSERT_BALANCE, SUSPENSE_ID, now, GENESIS_HASH)


async def ensure_demo(services: Services) -> dict[str, object]:
    """Seed the demo tenant at the first start in sandbox and write demo.json at every start."""
    demo = await _load_demo(services)
    if demo is None:
        demo = await _make_demo(services)
        await _store_demo(services, demo)
    settings = services.settings
    host = settings.base_url.rpartition(":")[0]
    demo["baseUrl"] = settings.base_url
    demo["authUrl"] = f"{host}:{settings.auth_port}" if settings.auth_port else settings.base_url
    demo["adminToken"] = settings.admin_token
    write_private(settings.data_dir / DEMO_FILE, json.dumps(demo, indent=2))
    return demo


async def _load_demo(services: Services) -> dict[str, object] | None:
    stored = await services.pool.fetchval(LOAD_SETTING, DEMO)
    if stored is None:
        return None
    opened = services.keyring.open(base64.b64decode(stored), context=DEMO.encode())
    demo: dict[str, object] = msgspec.json.decode(opened)
    return demo


async def _store_demo(services: Services, demo: dict[str, object]) -> None:
    sealed = services.keyring.seal(msgspec.json.encode(demo), context=DEMO.encode())
    await services.pool.execute(PUT_SETTING, DEMO, base64.b64encode(sealed).decode())


async def _make_demo(services: Services) -> dict[str, object]:
    passwords = Passwords()
    password = f"demo-{secrets.token_urlsafe(9)}"
    actor = "seed"
    try:
        tenant = await create_tenant(services, name="Demo", actor=actor)
        entity = await create_entity(
            services,
            passwords,
            tenant.tenant_id,
            entity_type="PERSON",
            name="Maria da Silva",
            document=DEMO_DOCUMENT,
            email="maria@example.com",
            phone="+5511912345678",
            password=password,
            actor=actor,
        )
    finally:
        passwords.close()
    accounts = []
    for number in (1, 2):
        view = await create_pix_account(services, tenant.tenant_id, entity.entity_id, actor=actor)
        account_id = view.account.account_id
        await _fund(services, account_id, number)
        _, text = await create_api_key(services, [account_id], actor=actor)
        accounts.append({"pixAccountId": account_id, "apiKey": text})
    _, reaches_both = await create_api_key(services, [a["pixAccountId"] for a in accounts], actor=actor)
    return {
        "baseUrl": "",
        "authUrl": "",
        "adminToken": "",
        "tenantId": str(tenant.tenant_id),
        "login": {"document": DEMO_DOCUMENT, "password": password},
        "accounts": accounts,
        "multiAccountApiKey": reaches_both,
    }


async def _fund(services: Services, account_id: str, number: int) -> None:
    """Give a demo account R$ 10,000.00 as a Pix that came in, booked like any other."""
    now = services.clock.now()
    payer = invent_payer("Lastro Demo", None)
    end_to_end_id = f"E{payer.ispb}{now:%Y%m%d%H%M}{number}{alphanumeric(10)}"
    await services.lanes.submit(RECEIVE, Credit(account_id, end_to_end_id, DEMO_CENTS, now, None, payer))
