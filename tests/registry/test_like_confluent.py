"""Where Confluent's registry has a rule that is easy to miss: what it does is what clients rely on."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from ottla.testing import Broker, Registry
from tests.registry.test_api import INT, MORE, OTHER, refused, register
from tests.registry.test_bad_input import count

# --- contexts


def test_subjects_of_all_contexts_are_listed_unless_a_prefix_names_one(http: httpx.Client, subject: str) -> None:
    inside = f":.listed:{subject}"
    register(http, subject)
    register(http, inside)
    assert {subject, inside} <= set(http.get("/subjects").json())
    assert inside not in http.get("/subjects?subjectPrefix=").json()
    assert subject in http.get("/subjects?subjectPrefix=").json()
    assert http.get("/subjects?subjectPrefix=:.listed:").json() == [inside]
    assert http.get(f"/contexts/.listed/subjects?subjectPrefix={subject}").json() == [inside]
    assert http.get("/contexts/.listed/subjects?subjectPrefix=nothing").json() == []
    default = http.get("/contexts/:.:/subjects").json()
    assert subject in default and inside not in default
    assert http.get(f"/subjects?subjectPrefix=:*:{subject}").json() == [inside, subject]
    both = http.get(f"/subjects?subjectPrefix={subject}&subjectPrefix=:.listed:").json()
    assert both == [inside, subject]
    for path in ("/schemas", "/schemas?subjectPrefix=:*:"):
        assert {subject, inside} <= {one["subject"] for one in http.get(path).json()}
    assert inside not in {one["subject"] for one in http.get("/schemas?subjectPrefix=").json()}
    found = http.get(f"/contexts/.listed/schemas?subjectPrefix={subject}").json()
    assert [one["subject"] for one in found] == [inside]


def test_a_reference_is_meant_in_the_context_of_who_refers(http: httpx.Client, subject: str) -> None:
    place = '{"type":"record","name":"Place","fields":[{"name":"x","type":"%s"}]}'
    user = '{"type":"record","name":"U","fields":[{"name":"place","type":"Place"}]}'
    inside, outside = f":.refers:{subject}", subject
    register(http, f"{outside}-place", place % "string")
    register(http, f"{inside}-place", place % "int")
    references = [{"name": "Place", "subject": f"{subject}-place", "version": 1}]
    number = register(http, f"{inside}-user", user, references=references)["id"]
    assert http.get(f"/subjects/{inside}-place/versions/1/referencedby").json() == [number]
    assert http.get(f"/subjects/{outside}-place/versions/1/referencedby").json() == []
    assert refused(http.delete(f"/subjects/{inside}-place/versions/1")) == (422, 42206)
    assert http.delete(f"/subjects/{outside}-place/versions/1").json() == 1
    elsewhere = {"schema": user, "references": references}
    assert refused(http.post(f"/subjects/:.nobody:{subject}/versions", json=elsewhere)) == (422, 42201)
    named = [{"name": "Place", "subject": f":.refers:{subject}-place", "version": -1}]
    assert register(http, f":.other:{subject}", user, references=named)["version"] == 1


def test_an_id_is_meant_in_the_context_of_path_and_subject(http: httpx.Client, subject: str) -> None:
    register(http, subject, '"long"')
    inside = register(http, f":.ids:{subject}-within", '"bytes"')["id"]
    assert http.get(f"/contexts/.ids/schemas/ids/{inside}?subject={subject}-within").json()["schema"] == '"bytes"'
    # A subject that only another context has is looked for there.
    assert http.get(f"/schemas/ids/{inside}?subject={subject}-within").json()["schema"] == '"bytes"'
    places = [{"subject": f":.ids:{subject}-within", "version": 1}]
    assert http.get(f"/contexts/.ids/schemas/ids/{inside}/versions").json() == places


def test_a_guid_is_known_as_long_as_any_context_has_the_schema(http: httpx.Client, subject: str) -> None:
    schema = '{"type":"fixed","name":"Twice","size":7}'
    outside, inside = register(http, subject, schema), register(http, f":.guids:{subject}", schema)
    guid = outside["guid"]
    assert inside["guid"] == guid
    ids = http.get(f"/schemas/guids/{guid}/ids").json()
    assert sorted(ids, key=lambda one: str(one["context"])) == [
        {"context": ".", "id": outside["id"]},
        {"context": ".guids", "id": inside["id"]},
    ]
    for permanent in ("", "?permanent=true"):
        assert http.delete(f"/subjects/{subject}{permanent}").json() == [1]
    assert http.get(f"/schemas/guids/{guid}").json()["schema"] == schema
    assert http.get(f"/schemas/guids/{guid}/ids").json() == [{"context": ".guids", "id": inside["id"]}]


# --- modes


def test_who_registers_what_is_there_is_answered_in_any_mode(http: httpx.Client, subject: str) -> None:
    """Serialisers register before they write: a subject that is read-only must not stop them."""
    registered = register(http, subject)
    for mode in ("READONLY", "FORWARD", "READONLY_OVERRIDE"):
        assert http.put(f"/mode/{subject}?force=true", json={"mode": mode}).status_code == 200
        assert register(http, subject) == registered
        assert refused(http.post(f"/subjects/{subject}/versions", json={"schema": MORE})) == (422, 42205)
    http.delete(f"/mode/{subject}")


def test_an_instance_without_writer_answers_who_registers_what_is_there(broker: Broker, http: httpx.Client) -> None:
    registered = register(http, "there-already")
    with (
        Registry(broker.bootstrap_servers, is_read_only=True) as follower,
        httpx.Client(base_url=follower.url, trust_env=False, timeout=60) as other,
    ):
        assert register(other, "there-already") == registered
        assert refused(other.post("/subjects/there-already/versions", json={"schema": MORE})) == (422, 42205)


def test_deleted_versions_do_not_hinder_an_import_and_go(http: httpx.Client, subject: str) -> None:
    register(http, subject)
    assert http.delete(f"/subjects/{subject}").json() == [1]
    assert http.put(f"/mode/{subject}", json={"mode": "IMPORT"}).json() == {"mode": "IMPORT"}
    assert refused(http.get(f"/subjects/{subject}/versions?deleted=true")) == (404, 40401)
    assert register(http, subject, OTHER, id=81_001, version=1)["id"] == 81_001
    assert http.put(f"/mode/{subject}", json={"mode": "IMPORT"}).json() == {"mode": "IMPORT"}, "it is in it already"
    reply = http.post(f"/subjects/{subject}/versions", json={"schema": MORE})
    assert refused(reply) == (422, 42205) and "not in read-write mode" in reply.json()["message"]
    http.put(f"/mode/{subject}", json={"mode": "FORWARD"})
    assert register(http, subject, INT, id=81_002, version=2)["version"] == 2
    http.delete(f"/mode/{subject}")


def test_an_id_or_a_version_beyond_the_last_is_not_given(http: httpx.Client, subject: str) -> None:
    """Both are four bytes with a sign, in records and for every client."""
    last = 2**31 - 1
    inside = f":.last:{subject}"
    http.put(f"/mode/{inside}", json={"mode": "IMPORT"})
    assert register(http, inside, INT, id=last, version=last)["id"] == last
    assert refused(http.post(f"/subjects/{inside}/versions", json={"schema": OTHER, "id": 5})) == (500, 50001)
    http.delete(f"/mode/{inside}")
    assert refused(http.post(f"/subjects/{inside}-2/versions", json={"schema": OTHER})) == (500, 50001)
    assert register(http, f"{inside}-2", INT)["id"] == last, "what has an id already needs none"


def test_an_id_that_is_zero_is_one(http: httpx.Client, subject: str) -> None:
    inside = f":.zero:{subject}"
    http.put(f"/mode/{inside}", json={"mode": "IMPORT"})
    assert register(http, inside, INT, id=0)["id"] == 0
    assert register(http, f"{inside}-2", INT)["id"] == 0


@pytest.mark.parametrize(
    "path",
    ["/subjects/:*:a", "/subjects/%ff", "/subjects/%ed%a0%80", "/contexts/.a:b/subjects/a", "/contexts/a:b/subjects/a"],
)
def test_names_that_would_mean_something_else_are_refused(path: str, http: httpx.Client) -> None:
    assert refused(http.post(f"{path}/versions", json={"schema": INT})) == (422, 42208)


@pytest.mark.parametrize("number", ["x", "1_0", "2.5", "%20", "%D9%A3", "0x2"])
def test_a_page_is_asked_for_with_numbers(number: str, http: httpx.Client) -> None:
    for name in ("limit", "offset"):
        assert refused(http.get(f"/subjects?{name}={number}")) == (404, 404)


# --- settings


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/config", {"compatibilityLevel": "NONE"}),
        ("/config", {"compat": "NONE"}),
        ("/mode", {"mode": "IMPORT", "x": 1}),
    ],
)
def test_a_setting_that_is_not_known_is_refused_and_not_passed_over(
    path: str, body: dict[str, Any], http: httpx.Client, broker: Broker
) -> None:
    register(http, "some-value")
    before = count(broker)
    assert refused(http.put(f"{path}/somebody", json=body)) == (422, 422)
    assert count(broker) == before


def test_the_settings_of_a_subject_go_when_the_subject_is_gone_for_good(http: httpx.Client, subject: str) -> None:
    register(http, subject)
    register(http, f"{subject}-2")
    for name in (subject, f"{subject}-2"):
        http.put(f"/config/{name}", json={"compatibility": "FULL"})
    assert http.delete(f"/subjects/{subject}").json() == [1]
    assert http.get(f"/config/{subject}").json() == {"compatibilityLevel": "FULL"}
    assert http.delete(f"/subjects/{subject}?permanent=true").json() == [1]
    assert refused(http.get(f"/config/{subject}")) == (404, 40408)
    for permanent in ("", "?permanent=true"):
        assert http.delete(f"/subjects/{subject}-2/versions/1{permanent}").json() == 1
    assert refused(http.get(f"/config/{subject}-2")) == (404, 40408)


def test_an_alias_stands_for_another_subject(http: httpx.Client, subject: str) -> None:
    number = register(http, subject)["id"]
    assert http.put(f"/config/{subject}-old", json={"alias": subject}).status_code == 200
    latest = http.get(f"/subjects/{subject}-old/versions/latest").json()
    assert (latest["subject"], latest["id"]) == (subject, number)
    assert http.post(f"/subjects/{subject}-old", json={"schema": INT}).json()["subject"] == subject
    assert register(http, f"{subject}-old", MORE)["version"] == 2
    assert http.get(f"/subjects/{subject}/versions").json() == [1, 2]
    reply = http.post(f"/compatibility/subjects/{subject}-old/versions/latest", json={"schema": OTHER})
    assert reply.json() == {"is_compatible": False}
    assert http.get(f"/config/{subject}-old").json() == {"alias": subject}, "settings are its own"
    assert refused(http.put(f"/config/{subject}-old", json={"alias": ":.c:"})) == (422, 42208)
    register(http, f":.aliases:{subject}", '"float"')
    http.put(f"/config/:.aliases:{subject}-old", json={"alias": subject})
    within = http.get(f"/contexts/.aliases/subjects/{subject}-old/versions/1").json()
    assert within["subject"] == f":.aliases:{subject}", "in its own context"


# --- numbers


@pytest.mark.parametrize(
    "path", ["/schemas/ids/{}", "/subjects/s/versions/{}", "/schemas/ids/{}/versions", "/subjects?limit={}"]
)
def test_numbers_beyond_all_measure_are_no_failure(path: str, http: httpx.Client) -> None:
    reply = http.get(path.format("9" * 5_000))
    assert reply.status_code in (404, 422), reply.text
    assert http.get("/subjects/s/versions/LATEST").json()["error_code"] == 40401


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        ("JSON", '{"minimum": NaN}'),
        ("JSON", '{"maximum": -Infinity}'),
        ("JSON", '{"type": "integer", "maximum": ' + "9" * 5_000 + "}"),
        ("AVRO", '{"type":"record","name":"R","fields":[{"name":"a","type":"double","default":NaN}]}'),
        ("AVRO", '{"type":"fixed","name":"F","size":' + "9" * 5_000 + "}"),
        ("PROTOBUF", 'syntax = "proto3"; message M { int32 a = ' + "9" * 5_000 + "; }"),
        ("PROTOBUF", 'syntax = "proto2"; message M { optional int64 a = 1 [default = ' + "9" * 5_000 + "]; }"),
    ],
)
def test_numbers_that_json_does_not_have_are_no_schema(kind: str, schema: str, http: httpx.Client) -> None:
    reply = http.post("/subjects/numbers/versions", json={"schema": schema, "schemaType": kind})
    assert refused(reply) == (422, 42201), reply.text


def test_a_body_has_only_numbers_that_json_has(http: httpx.Client) -> None:
    body = json.dumps({"schema": INT, "metadata": {"properties": {}}}).replace("{}", '{"a": NaN}')
    assert refused(http.post("/subjects/nan/versions", content=body)) == (400, 400)


def test_metadata_without_a_schema_belongs_to_the_schema_before(http: httpx.Client, subject: str) -> None:
    path = f"/subjects/{subject}/versions"
    assert refused(http.post(path, json={"metadata": {"properties": {"a": "1"}}})) == (422, 42201)
    first = http.post(path, json={"schema": '{"type": "string"}', "schemaType": "JSON"}).json()
    assert http.post(path, json={}).json() == first, "nothing new is said"
    second = http.post(path, json={"metadata": {"properties": {"a": "1"}}}).json()
    assert (second["version"], second["id"] != first["id"]) == (2, True)
    latest = http.get(f"{path}/latest").json()
    assert (latest["schemaType"], latest["schema"]) == ("JSON", '{"type":"string"}')
    assert latest["metadata"] == {"properties": {"a": "1"}}


def test_metadata_that_tells_its_version_tells_that_of_each_version(http: httpx.Client, subject: str) -> None:
    path = f"/subjects/{subject}/versions"

    def told(number: int) -> object:
        return http.get(f"{path}/{number}").json().get("metadata")

    tells = {"properties": {"confluent:version": "7", "owner": "x"}}
    first = http.post(path, json={"schema": '"int"', "metadata": tells}).json()
    assert told(1) == {"properties": {"confluent:version": "1", "owner": "x"}}
    # Whoever does not know the number, or knows it, means the same version.
    for metadata in (None, {"properties": {"owner": "x"}}, told(1)):
        assert http.post(path, json={"schema": '"int"', "metadata": metadata}).json() == first
    assert http.post(path, json={"schema": '"long"'}).json()["version"] == 2
    assert told(2) == {"properties": {"confluent:version": "2", "owner": "x"}}
    # Version -1 is a new one, whatever is there: the way back to an earlier schema.
    http.put(f"/config/{subject}", json={"compatibility": "NONE"})
    third = http.post(path, json={"schema": '"int"', "version": -1}).json()
    assert third["version"] == 3 and third["id"] != first["id"]
    assert told(3) == {"properties": {"confluent:version": "3", "owner": "x"}}
