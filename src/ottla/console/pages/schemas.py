"""Schemas of a registry: subjects, versions, what changed between two of them, and whether a new one would pass."""

from __future__ import annotations

import difflib
import json
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response

from ottla.client.schema_registry import Refused, RegistryClient
from ottla.common.errors import OttlaError
from ottla.console.web.console import Console, Visitor
from ottla.console.web.handling import Done, NotFound, change, page
from ottla.console.web.listing import listing
from ottla.console.web.requests import Form, whole
from ottla.console.web.routing import Route

_NO_CONTEXT_LINES = 1_000
_NOT_FOUND = (40401, 40402)


def _registry(console: Console) -> RegistryClient:
    if console.registry is None:
        raise OttlaError("there is no registry: start the console with --registry URL.")
    return console.registry


def schemas(console: Console, request: Request) -> Response:
    if console.registry is None:
        return console.page(request, "schemas.html", listing=None, level=None, problem_of_page=None)
    names: list[str] = []
    level, problem = None, None
    try:
        names = [str(name) for name in console.registry.get("subjects")]
        level = console.registry.get("config").get("compatibilityLevel")
    except OttlaError as error:
        problem = str(error)
    found = listing(request, names, str, {"name": str}, "name")
    return console.page(request, "schemas.html", listing=found, level=level, problem_of_page=problem)


def schema(console: Console, request: Request) -> Response:
    registry, name = _registry(console), request.path_params["subject"]
    try:
        versions = [int(number) for number in registry.get("subjects", name, "versions")]
    except Refused as error:
        if error.code in _NOT_FOUND:
            raise NotFound(f"There is no subject '{name}'.") from None
        raise
    asked = whole(request.query_params.get("version", ""))
    version = asked if asked in versions else versions[-1]
    other = whole(request.query_params.get("against", ""))
    earlier = [number for number in versions if number < version]
    against = earlier[-1] if earlier else None
    if other in versions:
        against = other
    now = registry.get("subjects", name, "versions", version)
    before = registry.get("subjects", name, "versions", against) if against is not None else None
    try:
        level = registry.get("config", name, defaultToGlobal=True).get("compatibilityLevel")
    except OttlaError:
        level = None
    return console.page(
        request,
        "schema.html",
        subject=name,
        versions=versions,
        version=version,
        against=against,
        schema=now,
        text=_pretty(now),
        level=level,
        diff=differences(_pretty(before), _pretty(now)) if before is not None else [],
    )


def _pretty(answer: Any) -> str:
    text = str(answer["schema"])
    if answer.get("schemaType", "AVRO") == "PROTOBUF":
        return text
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text


def differences(before: str, after: str) -> list[tuple[str, str]]:
    """Lines with what became of them: "+" new, "-" gone, "" as before."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=_NO_CONTEXT_LINES)
    return [({"+": "+", "-": "-"}.get(line[:1], ""), line[1:]) for line in list(lines)[3:]]


def register(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    registry = _registry(console)
    name = request.path_params.get("subject") or form.stripped("subject")
    if not name:
        raise OttlaError("a subject has a name, such as orders-value.")
    body = {"schema": form.text("schema"), "schemaType": form.text("type", "AVRO")}
    target = f"/schemas/{quote(name, safe='')}"
    if form.has("check"):
        try:
            answer = registry.post(body, "compatibility", "subjects", name, "versions", "latest", verbose=True)
        except Refused as error:
            if error.code in _NOT_FOUND:
                return Done(
                    f"It would be the first version of {name}.", target if "subject" in request.path_params else None
                )
            raise
        if not answer.get("is_compatible"):
            raise OttlaError(f"It is not compatible: {' '.join(answer.get('messages') or ['no reason is given.'])}")
        return Done("It is compatible with the latest version.", target)
    number = registry.post(body, "subjects", name, "versions")["id"]
    return Done(f"It is registered in {name}, with id {number}.", target)


def level(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    registry, name = _registry(console), request.path_params["subject"]
    registry.put({"compatibility": form.text("level")}, "config", name)
    return Done(f"Compatibility of {name} is {form.text('level')} now.")


def delete(console: Console, visitor: Visitor, form: Form, request: Request) -> Done:
    registry, name = _registry(console), request.path_params["subject"]
    if form.text("confirm") != name:
        raise OttlaError(f"nothing was deleted: write the name of the subject, {name}, to confirm it.")
    registry.delete("subjects", name)
    return Done(f"Subject {name} is deleted; it can be registered again.", "/schemas")


routes = [
    Route("/schemas", page(schemas)),
    Route("/schemas", change("change schemas", register), methods=["POST"]),
    Route("/schemas/{subject}", page(schema)),
    Route("/schemas/{subject}", change("change schemas", register), methods=["POST"]),
    Route("/schemas/{subject}/level", change("change schemas", level), methods=["POST"]),
    Route("/schemas/{subject}/delete", change("change schemas", delete), methods=["POST"]),
]
