"""The reference page shows the whole document, escapes it, and asks no other host for anything."""

import re
from html.parser import HTMLParser

import pytest

from lastro.api.openapi import describe
from lastro.api.reference import page
from lastro.api.reference_fields import curl, inline, kind_of
from lastro.kit.errors import catalogue
from tests.support.table import ROUTES

DOCUMENT = describe(ROUTES, "https://pix.example")
PAGE = page(DOCUMENT)
VOID = {"meta", "input"}


class Reader(HTMLParser):
    """Collects tags, ids and links, and insists that elements close in order."""

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.ids, self.links, self.attributes = [], set(), [], [], set()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        values = dict(attrs)
        if "id" in values:
            self.ids.append(values["id"])
        if "href" in values:
            self.links.append(values["href"])
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def reader():
    found = Reader()
    found.feed(PAGE)
    found.close()
    assert not found.open
    return found


def test_every_operation_event_error_and_type_has_its_place(reader):
    ids = set(reader.ids)
    for item in DOCUMENT["paths"].values():
        for operation in item.values():
            assert operation["operationId"] in ids
    for item in DOCUMENT["webhooks"].values():
        assert item["post"]["operationId"] in ids
    assert {f"error-{error.code}" for error in catalogue()} <= ids
    assert {f"type-{name}" for name in DOCUMENT["components"]["schemas"]} <= ids
    assert len(ids) == len(reader.ids), "an id stands twice"


def test_every_link_stays_on_this_server_and_leads_somewhere(reader):
    assert len(reader.links) > 300
    for link in reader.links:
        assert link == "/openapi.json" or (link.startswith("#") and link[1:] in reader.ids), link


def test_it_needs_no_script_and_nothing_from_elsewhere(reader):
    assert not reader.tags & {"script", "img", "link", "iframe", "object", "form"}
    assert not [name for name in reader.attributes if name.startswith("on") or name in {"src", "style"}]
    style = re.search(r"<style>(.*?)</style>", PAGE, re.DOTALL)[1]
    assert "url(" not in style
    assert "@import" not in style
    assert "prefers-color-scheme: dark" in style
    assert 'name="viewport"' in PAGE


def test_text_is_escaped():
    nasty = {
        **DOCUMENT,
        "info": {**DOCUMENT["info"], "title": "<script>alert(1)</script>", "description": "a <b> & `<i>`"},
    }
    written = page(nasty)
    assert "<script>" not in written
    assert "a &lt;b&gt; &amp; <code>&lt;i&gt;</code>" in written


def test_a_document_is_written_once_and_another_anew():
    assert page(DOCUMENT) is PAGE
    other = describe(ROUTES[:5], "https://other.example")
    assert "https://other.example" in page(other)
    assert page(DOCUMENT) is PAGE


def test_words_may_hold_code_and_bold():
    assert inline("**Money** is `cents` & more") == "<strong>Money</strong> is <code>cents</code> &amp; more"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "string", "minLength": 8, "maxLength": 64}, "string, 8 to 64 characters"),
        ({"type": "string", "minLength": 32, "maxLength": 32}, "string, 32 characters"),
        (
            {"type": "integer", "minimum": 1, "maximum": 200, "default": 20},
            "integer, 1 or more, 200 or less, default 20",
        ),
        ({"anyOf": [{"type": "string", "format": "uuid"}, {"type": "null"}]}, "string (uuid) or null"),
        ({"enum": ["A", "B"]}, "<code>A</code> | <code>B</code>"),
        ({"$ref": "#/components/schemas/Owner"}, '<a href="#type-Owner">Owner</a>'),
        ({"type": "array", "items": {"type": "string"}}, "array of string"),
        ({"type": ["object", "null"]}, "object or null"),
        ({}, "any"),
    ],
)
def test_types_are_written_in_words(schema, words):
    assert kind_of(schema) == words


def test_the_example_call_has_credential_key_and_body():
    operation = DOCUMENT["paths"]["/v1/payouts"]["post"]
    written = curl(DOCUMENT, "post", "/v1/payouts", operation)
    assert written.startswith("curl -X POST https://pix.example/v1/payouts")
    for part in (
        '"Authorization: Bearer $API_KEY"',
        '"Idempotency-Key: $(uuidgen)"',
        '"pixKey": "ok@sandbox.test"',
    ):
        assert part in written


async def test_the_service_shows_it_under_a_strict_policy(service):
    reply = await service.request("GET", "/docs")
    assert reply.status == 200
    assert reply.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in reply.headers["Content-Security-Policy"]
    assert b"Send a Pix by key" in reply.raw
