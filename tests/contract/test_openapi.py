"""The OpenAPI document is valid, complete, and says of every route what the route table says."""

import re

import jsonschema_rs
import msgspec
import pytest
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from lastro.api.auth import LoginDesk
from lastro.api.openapi import SECURITY, describe
from lastro.api.openapi_examples import BODIES
from lastro.api.openapi_links import LINKS
from lastro.api.openapi_responses import errors_of
from lastro.api.openapi_rules import ANSWERED, ASKED
from lastro.api.openapi_words import FIELDS, TAGS
from lastro.api.routes import Route, Select
from lastro.api.wire import NoBody
from lastro.kit.errors import catalogue
from lastro.main import all_routes
from lastro.outbox.model import DATA_OF

# The table needs neither a login desk nor password threads to be read.
ROUTES: list[Route] = [route for route in all_routes(LoginDesk(None, None, None), None) if route.documented]
DOCUMENT = describe(ROUTES, "https://pix.example")
BODY_ROUTES = [r for r in ROUTES if r.body is not None and r.body.__name__ != NoBody.__name__]
COMMON_HEADERS = {
    "X-Request-Id",
    "X-RateLimit-Limit",
    "X-RateLimit-Remaining",
    "X-RateLimit-Reset",
    "Retry-After",
}


def name_of(route):
    return f"{route.method} {route.path}"


def operation_of(route):
    return DOCUMENT["paths"][route.path][route.method.lower()]


def walk(node, path="#"):
    yield path, node
    if isinstance(node, dict):
        for name, value in node.items():
            yield from walk(value, f"{path}/{name.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(node, list):
        for index, value in enumerate(node):
            yield from walk(value, f"{path}/{index}")


def at(pointer):
    node = DOCUMENT
    for part in pointer.removeprefix("#/").split("/"):
        node = node[part.replace("~1", "/").replace("~0", "~")]
    return node


def validator(schema):
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "components": DOCUMENT["components"],
    }
    return jsonschema_rs.Draft202012Validator(whole, validate_formats=True)


def test_it_satisfies_the_meta_schema_of_openapi_3_1():
    OPENAPI_31_VALIDATOR.validate(DOCUMENT)


def test_every_schema_satisfies_the_meta_schema_of_json_schema():
    for name, schema in DOCUMENT["components"]["schemas"].items():
        assert jsonschema_rs.meta.is_valid(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
        ), name


def test_every_reference_leads_somewhere():
    references = [
        (path, node["$ref"]) for path, node in walk(DOCUMENT) if isinstance(node, dict) and "$ref" in node
    ]
    assert len(references) > 500
    for path, reference in references:
        assert reference.startswith("#/"), path
        at(reference)


def test_every_component_is_used():
    used = {
        node["$ref"]
        for _, node in walk(DOCUMENT)
        if isinstance(node, dict) and isinstance(node.get("$ref"), str)
    }
    for kind in ("schemas", "headers", "examples"):
        for name in DOCUMENT["components"][kind]:
            error_of_no_route = kind == "examples" and name in {"method_not_allowed", "provider_error"}
            assert f"#/components/{kind}/{name}" in used or error_of_no_route, f"{kind} {name}"


def test_every_route_stands_in_it_and_nothing_else():
    described = {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item}
    assert described == {(route.method, route.path) for route in ROUTES}


def test_operation_ids_are_unique():
    ids = [operation_of(route)["operationId"] for route in ROUTES]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_parameters_are_those_that_are_enforced(route):
    parameters = {(p["in"], p["name"]): p for p in operation_of(route)["parameters"]}
    assert {name for place, name in parameters if place == "path"} == set(re.findall(r"{(\w+)}", route.path))
    query = set() if route.query is None else {f.encode_name for f in msgspec.structs.fields(route.query)}
    assert {name for place, name in parameters if place == "query"} == query
    key = parameters.get(("header", "Idempotency-Key"))
    assert (key is not None) == route.idempotent
    if key:
        assert key["required"]
        assert (key["schema"]["minLength"], key["schema"]["maxLength"]) == (8, 64)
    account = parameters.get(("header", "X-Pix-Account-Id"))
    assert (account is not None) == (route.select is not Select.NONE)
    if account:
        assert account["required"] == (route.select is Select.HEADER_ALWAYS)
        assert (account["schema"]["minLength"], account["schema"]["maxLength"]) == (10, 40)


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_security_is_the_credential_of_the_route(route):
    expected = [{SECURITY[route.auth]: []}] if route.auth in SECURITY else []
    assert operation_of(route)["security"] == expected


@pytest.mark.parametrize("route", ROUTES, ids=name_of)
def test_responses_are_the_answer_and_every_error_with_their_headers(route):
    responses = operation_of(route)["responses"]
    statuses = {str(error.status) for error in errors_of(route)}
    assert set(responses) == {str(route.status)} | statuses
    for status, response in responses.items():
        assert set(response["headers"]) >= COMMON_HEADERS
        assert ("Idempotent-Replayed" in response["headers"]) == route.idempotent
        if int(status) >= 400:
            codes = response["content"]["application/json"]["schema"]["allOf"][1]
            listed = codes["properties"]["error"]["properties"]["code"]["enum"]
            assert listed == sorted(error.code for error in errors_of(route) if str(error.status) == status)
    assert {error.status for error in errors_of(route)} >= {400, 429, 500, 503}


@pytest.mark.parametrize("route", BODY_ROUTES, ids=name_of)
def test_examples_of_bodies_are_valid_and_taken(route):
    content = operation_of(route)["requestBody"]["content"]["application/json"]
    assert content["examples"], "a body without an example"
    for example in content["examples"].values():
        validator(content["schema"]).validate(example["value"])
        msgspec.convert(example["value"], route.body)


def test_examples_of_schemas_are_valid():
    for name, schema in DOCUMENT["components"]["schemas"].items():
        for example in schema.get("examples", []):
            errors = [
                f"{error.instance_path}: {error.message}" for error in validator(schema).iter_errors(example)
            ]
            assert not errors, f"{name}: {errors}"


def test_examples_of_errors_are_valid_and_complete():
    examples = DOCUMENT["components"]["examples"]
    assert set(examples) == {error.code for error in catalogue()}
    for example in examples.values():
        validator(DOCUMENT["components"]["schemas"]["Error"]).validate(example["value"])


def test_every_code_stands_once_in_the_catalogue():
    codes = [error.code for error in catalogue()]
    assert len(set(codes)) == len(codes)


def test_the_error_schema_refuses_other_forms():
    check = validator(DOCUMENT["components"]["schemas"]["Error"])
    good = {"code": "not_found", "message": "No.", "requestId": "r"}
    assert check.is_valid({"error": good})
    for bad in (
        {"error": "not_found"},
        {"error": good, "more": 1},
        {"error": {**good, "code": "unheard_of"}},
        {},
    ):
        assert not check.is_valid(bad)


def test_links_lead_to_operations_and_name_their_parameters():
    targets = {operation_of(route)["operationId"]: operation_of(route) for route in ROUTES}
    count = 0
    for route in ROUTES:
        for link in operation_of(route)["responses"][str(route.status)].get("links", {}).values():
            parameters = {f"{p['in']}.{p['name']}" for p in targets[link["operationId"]]["parameters"]}
            assert set(link["parameters"]) <= parameters, f"{name_of(route)} -> {link['operationId']}"
            count += 1
    assert count >= sum(len(links) for links in LINKS.values())


def test_link_pointers_name_fields_of_the_answer():
    for source, links in LINKS.items():
        route = next(route for route in ROUTES if name_of(route) == source)
        schema = operation_of(route)["responses"][str(route.status)]["content"]["application/json"]["schema"]
        for link in links:
            for expression in (*link.values.values(), *(link.body or {}).values()):
                assert_pointer(schema, expression, source)


def assert_pointer(schema, expression, source):
    if not expression.startswith("$response.body#/"):
        return
    node = at(schema["$ref"])
    for part in expression.removeprefix("$response.body#/").split("/"):
        node = node["items"] if part == "0" else node["properties"][part]
        node = at(node["$ref"]) if "$ref" in node else node
    assert node, f"{source}: {expression}"


def test_the_eight_events_are_described_with_exactly_their_fields():
    assert set(DOCUMENT["webhooks"]) == {str(name) for name in DATA_OF}
    for name, kind in DATA_OF.items():
        operation = DOCUMENT["webhooks"][str(name)]["post"]
        content = operation["requestBody"]["content"]["application/json"]
        data = at(content["schema"]["properties"]["data"]["$ref"])
        assert set(data["properties"]) == {field.encode_name for field in msgspec.structs.fields(kind)}
        validator(content["schema"]).validate(content["examples"]["event"]["value"])
        headers = {parameter["name"] for parameter in operation["parameters"]}
        assert headers == {
            "webhook-event-type", "webhook-id", "webhook-timestamp", "webhook-signature", "Authorization",
        }  # fmt: skip


def test_tables_of_words_rules_and_examples_name_nothing_that_is_gone():
    schemas = DOCUMENT["components"]["schemas"]
    queries = {route.query.__name__: route.query for route in ROUTES if route.query}
    fields = {field for schema in schemas.values() for field in schema.get("properties", {})}
    fields |= {f.encode_name for query in queries.values() for f in msgspec.structs.fields(query)}
    qualified = {
        f"{name}.{field}" for name, schema in schemas.items() for field in schema.get("properties", {})
    }
    qualified |= {
        f"{n}.{f.encode_name}" for n, query in queries.items() for f in msgspec.structs.fields(query)
    }
    for table in (ASKED, ANSWERED, FIELDS):
        assert set(table) <= fields | qualified, set(table) - fields - qualified
    assert set(BODIES) <= {route.body.__name__ for route in BODY_ROUTES}
    assert {route.tag for route in ROUTES} == set(TAGS), "a tag without words, or words without a tag"


def test_it_is_deterministic_and_follows_the_table():
    again = describe(list(ROUTES), "https://pix.example")
    assert msgspec.json.encode(again) == msgspec.json.encode(DOCUMENT)
    live = describe([route for route in ROUTES if not route.sandbox_only], "https://pix.example")
    assert not [path for path in live["paths"] if path.startswith("/sandbox")]
    OPENAPI_31_VALIDATOR.validate(live)


@pytest.mark.parametrize(
    ("amount", "fits"),
    [
        ("1", True),
        ("007", True),
        ("9" * 15, True),
        ("0", False),
        ("9" * 16, False),
        ("1.5", False),
        ("-1", False),
        ("", False),
    ],
)
def test_the_schema_of_an_amount_is_the_rule_that_is_enforced(amount, fits):
    schema = DOCUMENT["components"]["schemas"]["NewPayout"]["properties"]["amountCents"]
    assert validator(schema).is_valid(amount) is fits


async def test_the_service_serves_it(service):
    reply = await service.request("GET", "/openapi.json")
    assert reply.status == 200
    assert reply.body["paths"].keys() == DOCUMENT["paths"].keys()
    assert reply.body["servers"] == [{"url": service.url}]
