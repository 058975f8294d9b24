"""The HTTP API: paths, status and error codes, and what clients may rely on."""

from __future__ import annotations

import json
from typing import Any

import httpx

INT = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'
MORE = '{"type":"record","name":"R","fields":[{"name":"a","type":"int"},{"name":"b","type":"int","default":0}]}'
OTHER = '{"type":"record","name":"R","fields":[{"name":"c","type":"string"}]}'


def register(http: httpx.Client, subject: str, schema: str = INT, **more: Any) -> dict[str, Any]:
    reply = http.post(f"/subjects/{subject}/versions", json={"schema": schema, **more})
    assert reply.status_code == 200, reply.text
    answer: dict[str, Any] = reply.json()
    return answer


def refused(reply: httpx.Response) -> tuple[int, int]:
    assert reply.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    return reply.status_code, reply.json()["error_code"]


def test_a_schema_is_found_by_id_guid_subject_and_text(http: httpx.Client, subject: str) -> None:
    registered = register(http, subject)
    assert registered["version"] == 1
    by_id = http.get(f"/schemas/ids/{registered['id']}").json()
    assert by_id["schema"] == INT and by_id["guid"] == registered["guid"]
    assert http.get(f"/schemas/ids/{registered['id']}/schema").text == INT
    assert http.get(f"/schemas/guids/{registered['guid']}").json()["schema"] == INT
    assert {"context": ".", "id": registered["id"]} in http.get(f"/schemas/guids/{registered['guid']}/ids").json()
    latest = http.get(f"/subjects/{subject}/versions/latest").json()
    assert (latest["subject"], latest["version"], latest["id"]) == (subject, 1, registered["id"])
    found = http.post(f"/subjects/{subject}", json={"schema": INT}).json()
    assert (found["version"], found["id"]) == (1, registered["id"])
    assert {"subject": subject, "version": 1} in http.get(f"/schemas/ids/{registered['id']}/versions").json()
    assert subject in http.get(f"/schemas/ids/{registered['id']}/subjects").json()
    assert subject in http.get("/subjects").json()
    assert http.get(f"/subjects/{subject}/versions").json() == [1]


def test_the_same_schema_has_one_id_and_one_version(http: httpx.Client, subject: str) -> None:
    first, again = register(http, subject), register(http, subject, json.dumps(json.loads(INT), indent=2))
    elsewhere = register(http, f"{subject}-elsewhere")
    assert first == again
    assert (elsewhere["id"], elsewhere["version"]) == (first["id"], 1)
    more = register(http, subject, MORE)
    assert more["version"] == 2 and more["id"] > first["id"]


def test_an_incompatible_schema_is_refused_with_path_and_rule(http: httpx.Client, subject: str) -> None:
    register(http, subject)
    reply = http.post(f"/subjects/{subject}/versions", json={"schema": OTHER})
    assert refused(reply) == (409, 40901)
    assert "READER_FIELD_MISSING_DEFAULT_VALUE" in reply.json()["message"]
    assert "/fields/0" in reply.json()["message"]
    checked = http.post(
        f"/compatibility/subjects/{subject}/versions/latest?verbose=true", json={"schema": OTHER}
    ).json()
    assert checked["is_compatible"] is False and "'c'" in checked["messages"][0]
    assert http.get(f"/subjects/{subject}/versions").json() == [1]


def test_the_level_of_a_subject_decides(http: httpx.Client, subject: str) -> None:
    register(http, subject)
    assert refused(http.get(f"/config/{subject}")) == (404, 40408)
    assert http.get(f"/config/{subject}?defaultToGlobal=true").json() == {"compatibilityLevel": "BACKWARD"}
    assert http.put(f"/config/{subject}", json={"compatibility": "NONE"}).json() == {"compatibility": "NONE"}
    assert register(http, subject, OTHER)["version"] == 2
    assert http.get(f"/config/{subject}").json() == {"compatibilityLevel": "NONE"}
    assert refused(http.put(f"/config/{subject}", json={"compatibility": "SOMEWHAT"})) == (422, 42203)
    assert http.delete(f"/config/{subject}").json() == {"compatibilityLevel": "NONE"}
    assert refused(http.delete(f"/config/{subject}")) == (404, 40401)


def test_a_version_is_deleted_softly_and_then_for_good(http: httpx.Client, subject: str) -> None:
    registered = register(http, subject)
    register(http, subject, MORE)
    one = f"/subjects/{subject}/versions/1"
    assert refused(http.delete(f"{one}?permanent=true")) == (404, 40407)
    assert http.delete(one).json() == 1
    assert refused(http.get(one)) == (404, 40402)
    assert http.get(f"{one}?deleted=true").json()["deleted"] is True
    assert refused(http.delete(one)) == (404, 40406)
    assert http.get(f"/schemas/ids/{registered['id']}").status_code == 200
    assert http.get(f"/subjects/{subject}/versions?deleted=true").json() == [1, 2]
    assert http.delete(f"{one}?permanent=true").json() == 1
    assert http.get(f"/subjects/{subject}/versions?deleted=true").json() == [2]


def test_a_subject_is_deleted_softly_and_then_for_good(http: httpx.Client, subject: str) -> None:
    register(http, subject)
    register(http, subject, MORE)
    assert refused(http.delete(f"/subjects/{subject}?permanent=true")) == (404, 40405)
    assert http.delete(f"/subjects/{subject}").json() == [1, 2]
    assert subject not in http.get("/subjects?subjectPrefix=").json()
    assert subject in http.get("/subjects?deleted=true").json()
    assert refused(http.delete(f"/subjects/{subject}")) == (404, 40404)
    assert register(http, subject)["version"] == 3, "numbers of versions go on"
    assert http.delete(f"/subjects/{subject}").json() == [3]
    assert http.delete(f"/subjects/{subject}?permanent=true").json() == [2, 3]
    assert refused(http.get(f"/subjects/{subject}/versions?deleted=true")) == (404, 40401)


def test_what_is_not_there_has_confluents_codes(http: httpx.Client, subject: str) -> None:
    assert refused(http.get("/subjects/nobody/versions")) == (404, 40401)
    assert refused(http.get("/subjects/nobody/versions/1")) == (404, 40401)
    assert refused(http.get("/schemas/ids/987654")) == (404, 40403)
    register(http, subject)
    assert refused(http.get(f"/subjects/{subject}/versions/9")) == (404, 40402)
    assert refused(http.get(f"/subjects/{subject}/versions/zero")) == (422, 42202)
    assert refused(http.post(f"/subjects/{subject}", json={"schema": OTHER})) == (404, 40403)
    assert refused(http.get("/mode/nobody")) == (404, 40409)
    assert refused(http.get("/no/such/path")) == (404, 404)
    assert refused(http.patch("/subjects")) == (405, 405)


def test_a_reference_is_resolved_and_keeps_what_it_names(http: httpx.Client, subject: str) -> None:
    place = '{"type":"record","name":"Place","namespace":"geo","fields":[{"name":"x","type":"int"}]}'
    user = '{"type":"record","name":"U","fields":[{"name":"a","type":"geo.Place"},{"name":"b","type":"geo.Place"}]}'
    register(http, f"{subject}-place", place)
    references = [{"name": "geo.Place", "subject": f"{subject}-place", "version": 1}]
    registered = register(http, subject, user, references=references)
    assert http.get(f"/schemas/ids/{registered['id']}").json()["references"] == references
    assert json.loads(http.get(f"/schemas/ids/{registered['id']}").json()["schema"]) == json.loads(user)
    referrers = http.get(f"/subjects/{subject}-place/versions/1/referencedby").json()
    assert referrers == [registered["id"]]
    assert refused(http.delete(f"/subjects/{subject}-place/versions/1")) == (422, 42206)
    assert refused(http.delete(f"/subjects/{subject}-place")) == (422, 42206)
    http.delete(f"/subjects/{subject}")
    assert http.delete(f"/subjects/{subject}-place").json() == [1]


def test_modes_forbid_and_import(http: httpx.Client, subject: str) -> None:
    register(http, subject)
    assert http.put(f"/mode/{subject}", json={"mode": "READONLY"}).json() == {"mode": "READONLY"}
    reply = http.post(f"/subjects/{subject}/versions", json={"schema": MORE})
    assert refused(reply) == (422, 42205)
    assert refused(http.put(f"/mode/{subject}", json={"mode": "SLEEPING"})) == (422, 42204)
    assert refused(http.put(f"/mode/{subject}", json={"mode": "IMPORT"})) == (422, 42205)
    assert http.delete(f"/mode/{subject}").json() == {"mode": "READONLY"}
    assert refused(http.post(f"/subjects/{subject}/versions", json={"schema": MORE, "id": 5})) == (422, 42205)
    other = f"{subject}-imported"
    http.put(f"/mode/{other}", json={"mode": "IMPORT"})
    imported = register(http, other, OTHER, id=70_001, version=7)
    assert (imported["id"], imported["version"]) == (70_001, 7)
    reply = http.post(f"/subjects/{other}/versions", json={"schema": MORE, "id": 70_001, "version": 8})
    assert refused(reply) == (422, 42205)
    http.delete(f"/mode/{other}")
    assert register(http, f"{subject}-next", '"bytes"')["id"] > 70_001


def test_contexts_have_ids_and_subjects_of_their_own(http: httpx.Client, subject: str) -> None:
    register(http, subject)
    inside = register(http, f"%3A.lab%3A{subject}", '"double"')
    assert inside["id"] == 1
    assert http.get("/contexts/.lab/schemas/ids/1").json()["schema"] == '"double"'
    assert f":.lab:{subject}" in http.get("/contexts/.lab/subjects").json()
    assert f":.lab:{subject}" not in http.get("/subjects?subjectPrefix=").json()
    assert http.get("/contexts").json() == [".", ".lab"]
    assert http.get(f"/contexts/.lab/subjects/{subject}/versions").json() == [1]
    assert http.get(f"/schemas/ids/1?subject=:.lab:{subject}").json()["schema"] == '"double"'


def test_normalised_texts_are_one_schema(http: httpx.Client, subject: str) -> None:
    one = '{"type":"record","name":"a.R","fields":[{"name":"x","type":{"type":"int","p":1,"b":2}}]}'
    two = '{"type":"record","name":"R","namespace":"a","fields":[{"name":"x","type":{"type":"int","b":2,"p":1}}]}'
    answers = [
        http.post(f"/subjects/{subject}/versions?normalize=true", json={"schema": text}).json() for text in (one, two)
    ]
    assert answers[0]["id"] == answers[1]["id"] and answers[1]["version"] == 1
    assert http.post(f"/subjects/{subject}?normalize=true", json={"schema": two}).json()["version"] == 1
    assert refused(http.post(f"/subjects/{subject}", json={"schema": two})) == (404, 40403)


def test_metadata_is_kept_inherited_and_searched(http: httpx.Client, subject: str) -> None:
    metadata = {"properties": {"owner": "sales"}, "tags": {"a": ["PII"]}}
    register(http, subject, INT, metadata=metadata)
    register(http, subject, MORE)
    assert http.get(f"/subjects/{subject}/versions/2").json()["metadata"] == metadata
    found = http.get(f"/subjects/{subject}/metadata?key=owner&value=sales").json()
    assert found["version"] == 2
    assert refused(http.get(f"/subjects/{subject}/metadata?key=owner&value=nobody")) == (404, 40403)


def test_a_list_is_read_in_pages(http: httpx.Client, subject: str) -> None:
    for number in range(5):
        register(http, f"{subject}-{number}")
    everything = http.get(f"/subjects?subjectPrefix={subject}-").json()
    assert len(everything) == 5
    assert http.get(f"/subjects?subjectPrefix={subject}-&offset=1&limit=2").json() == everything[1:3]
    assert [one["subject"] for one in http.get(f"/schemas?subjectPrefix={subject}-").json()] == everything
