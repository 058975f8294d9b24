"""All paths of the API. Each also exists below `/contexts/NAME`, where names of subjects belong to that context."""

from __future__ import annotations

from starlette.routing import Route

from ottla.registry.api import changing, looking

_LOOK = (
    ("/schemas/types", looking.schema_types),
    ("/schemas", looking.all_schemas),
    ("/schemas/ids/{id}", looking.schema_by_id),
    ("/schemas/ids/{id}/schema", looking.schema_text_by_id),
    ("/schemas/ids/{id}/versions", looking.places_of_id),
    ("/schemas/ids/{id}/subjects", looking.subjects_of_id),
    ("/schemas/guids/{guid}", looking.schema_by_guid),
    ("/schemas/guids/{guid}/ids", looking.ids_by_guid),
    ("/subjects", looking.subjects),
    ("/subjects/{subject}/versions", looking.versions),
    ("/subjects/{subject}/metadata", looking.latest_with_metadata),
    ("/subjects/{subject}/versions/{version}", looking.version),
    ("/subjects/{subject}/versions/{version}/schema", looking.version_text),
    ("/subjects/{subject}/versions/{version}/referencedby", looking.referenced_by),
    ("/config", looking.global_config),
    ("/config/{subject}", looking.subject_config),
    ("/mode", looking.global_mode),
    ("/mode/{subject}", looking.subject_mode),
)
_ASK = (
    ("/subjects/{subject}", looking.look_up),
    ("/compatibility/subjects/{subject}/versions", looking.compatibility),
    ("/compatibility/subjects/{subject}/versions/{version}", looking.compatibility),
)
_CHANGE = (
    ("POST", "/subjects/{subject}/versions", changing.register),
    ("DELETE", "/subjects/{subject}", changing.delete_subject),
    ("DELETE", "/subjects/{subject}/versions/{version}", changing.delete_version),
    ("PUT", "/config", changing.put_config),
    ("PUT", "/config/{subject}", changing.put_config),
    ("DELETE", "/config", changing.delete_config),
    ("DELETE", "/config/{subject}", changing.delete_config),
    ("PUT", "/mode", changing.put_mode),
    ("PUT", "/mode/{subject}", changing.put_mode),
    ("DELETE", "/mode", changing.delete_mode),
    ("DELETE", "/mode/{subject}", changing.delete_mode),
)
_INSTANCE = (
    ("/", looking.root),
    ("/contexts", looking.contexts),
    ("/v1/metadata/id", looking.cluster_id),
    ("/v1/metadata/version", looking.server_version),
)


def routes() -> list[Route]:
    found = [Route(path, endpoint, methods=["GET"]) for path, endpoint in _INSTANCE]
    for prefix in ("", "/contexts/{context}"):
        found += [Route(prefix + path, endpoint, methods=["GET"]) for path, endpoint in _LOOK]
        found += [Route(prefix + path, endpoint, methods=["POST"]) for path, endpoint in _ASK]
        found += [Route(prefix + path, endpoint, methods=[method]) for method, path, endpoint in _CHANGE]
    return found
