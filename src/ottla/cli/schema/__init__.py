"""`ottla schema`: the group; `show` looks, `change` changes."""

from __future__ import annotations

from ottla.cli.lazy import Lazy, Section
from ottla.cli.settings import VerbGroup

schema = VerbGroup(
    "schema",
    help="Schemas of a registry: list, get, register, check, delete.",
    sections=(
        Section(
            "Look",
            (
                Lazy("list", "schema.show:list_subjects", "List subjects and their latest versions."),
                Lazy("get", "schema.show:get", "Print a schema, by subject or by id."),
                Lazy("check", "schema.change:check", "Would a schema be accepted? If not, why."),
            ),
        ),
        Section(
            "Change",
            (
                Lazy("register", "schema.change:register", "Register a schema under a subject."),
                Lazy("delete", "schema.change:delete", "Delete a subject or one version of it."),
            ),
        ),
    ),
)
