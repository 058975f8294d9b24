"""Classes of protobuf's runtime for the messages of a registered file."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from importlib import import_module
from typing import Any

# Those that come with protobuf: everybody may import them without a reference.
WELL_KNOWN = "any api descriptor duration empty field_mask source_context struct timestamp type wrappers".split()  # noqa: SIM905


def well_known(name: str) -> Any | None:
    """The description of such a file."""
    from google.protobuf import descriptor_pb2

    stem = name.removeprefix("google/protobuf/").removesuffix(".proto")
    if stem not in WELL_KNOWN or not name.startswith("google/protobuf/"):
        return None
    file = descriptor_pb2.FileDescriptorProto()
    import_module(f"google.protobuf.{stem}_pb2").DESCRIPTOR.CopyToProto(file)
    return file


def message_classes(text: str, references: Mapping[str, str]) -> list[Any]:
    """Those of a file, in their order. `text`: the bytes of its descriptor, in base64, as all references are."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    files = {
        name: descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(one)) for name, one in references.items()
    }
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text))
    added: set[str] = set()

    def add(name: str, each: Any) -> None:
        if name in added:
            return
        added.add(name)
        each.name = name
        for dependency in each.dependency:
            found = files.get(dependency) or well_known(dependency)
            if found is not None:
                add(dependency, found)
        pool.Add(each)

    add("default", file)
    return [class_of(one) for one in pool.FindFileByName("default").message_types_by_name.values()]


def class_of(descriptor: Any) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(descriptor)
