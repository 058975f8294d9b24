"""Random schemas, records and settings, from a seed: small alphabets, so that settings meet what they are about."""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any

NAMES = ["a", "b", "c", "d", "e.f", "g"]
TEXTS = [
    "",
    "a",
    "true",
    "12",
    "-7",
    "+5",
    "1.5",
    "1e3",
    "x,y",
    "2020-02-29",
    "12:30:00.250Z",
    "ä€",
    '"q"',
    "[1,2]",
    " 3",
]
LOGICAL = "org.apache.kafka.connect.data."
PRIMITIVES = ["int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes"]
TIMES = ["Decimal", "Date", "Time", "Timestamp"]


def schema(random: Random, depth: int = 2, *, kinds: list[str] | None = None, plain: bool = False) -> dict[str, Any]:
    choices = kinds or [*PRIMITIVES, *TIMES, *(["array", "map", "struct"] if depth else [])]
    kind = random.choice(choices)
    made: dict[str, Any] = {"type": kind, "optional": random.random() < 0.5}
    if kind in TIMES:
        made |= {"type": {"Decimal": "bytes", "Timestamp": "int64"}.get(kind, "int32"), "name": LOGICAL + kind}
        made["version"] = 1
        if kind == "Decimal":
            made["parameters"] = {"scale": str(random.choice([2, 5]))}
    elif kind == "array":
        made["items"] = schema(random, depth - 1)
    elif kind == "map":
        made["keys"] = {"type": random.choice(["string", "int32", "string"]), "optional": False}
        made["values"] = schema(random, depth - 1)
    elif kind == "struct":
        made = struct(random, depth - 1, made["optional"])
    if plain:
        return made
    if kind not in TIMES and random.random() < 0.15:
        made |= {"name": random.choice(["n.One", "Two"]), "version": random.randint(1, 3)}
    if random.random() < 0.1:
        made["doc"] = "what it is"
    if kind not in TIMES and random.random() < 0.1:
        made["parameters"] = {"p": "q"}
    if kind not in ("struct", "array", "map") and random.random() < 0.2:
        made["default"] = payload(random, {**made, "optional": False}, valid=True)
    return made


def struct(random: Random, depth: int = 1, optional: bool | None = None, **more: Any) -> dict[str, Any]:
    names = random.sample(NAMES, random.randint(0 if random.random() < 0.1 else 1, 4))
    return {
        "type": "struct",
        "optional": random.random() < 0.3 if optional is None else optional,
        "fields": [{**schema(random, depth, **more), "field": name} for name in names],
    }


def payload(random: Random, of: dict[str, Any], *, valid: bool = False) -> Any:
    if of.get("optional") and random.random() < 0.25:
        return None
    if not valid and random.random() < 0.02:
        return random.choice([None, 5, "text", True, [], {}, 1.5, [1], {"a": 1}])
    kind, name = of["type"], of.get("name", "").removeprefix(LOGICAL)
    if name == "Decimal":
        number = random.choice([0, 1, -1, 127, 128, -128, -129, random.randint(-(10**20), 10**20)])
        size = (number if number >= 0 else -number - 1).bit_length() // 8 + 1
        return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()
    if name == "Date":
        return random.choice([0, 1, -1, random.randint(-20000, 60000)])
    if name == "Time":
        return random.choice([0, 86399999, random.randint(0, 86399999)])
    if name == "Timestamp":
        return moment(random)
    if kind in ("int8", "int16", "int32", "int64"):
        bits = int(kind[3:])
        return random.choice(
            [
                0,
                1,
                -1,
                2 ** (bits - 1) - 1,
                -(2 ** (bits - 1)),
                random.randint(-100, 100),
                moment(random) % 2 ** (bits - 1),
            ]
        )
    if kind in ("float", "double"):
        return random.choice(
            [0.0, 1.5, -2.25, 1e10, 1e-5, 123456.75, -0.5, 300.0, 100000000.0, random.randint(-999, 999) / 8]
        )
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "string":
        return random.choice(TEXTS)
    if kind == "bytes":
        return base64.b64encode(random.choice([b"", b"\x00\xff", b"abc"])).decode()
    if kind == "array":
        return [payload(random, of["items"], valid=valid) for _ in range(random.randint(0, 3))]
    if kind == "map":
        entries = [
            (key, payload(random, of["values"], valid=valid)) for key in random.sample([1, 2, 3], random.randint(0, 3))
        ]
        if of["keys"]["type"] == "string":
            return {f"k{key}": value for key, value in entries}
        return [list(entry) for entry in entries]
    return {
        each["field"]: value
        for each in of["fields"]
        if (value := payload(random, each, valid=valid)) is not None or random.random() < 0.8
    }


def moment(random: Random) -> int:
    return random.choice(
        [0, 1, -1, 86400000, 1582934400000, 1600000000123, random.randint(-(10**12), 4 * 10**12), 999, 86399999]
    )


def tree(random: Random, depth: int = 2) -> Any:
    """JSON without a schema."""
    kind = random.choice("nbidsslm" if depth else "nbids")
    if kind == "l":
        return [tree(random, depth - 1) for _ in range(random.randint(0, 3))]
    if kind == "m":
        return mapping(random, depth - 1)
    return {
        "n": None,
        "b": random.random() < 0.5,
        "i": random.choice([0, 1, -5, 300, 2**40, moment(random)]),
        "d": random.choice([0.5, -1.25, 1e10, 1e300, 3.0]),
        "s": random.choice(TEXTS),
    }[kind]


def mapping(random: Random, depth: int = 1) -> dict[str, Any]:
    return {name: tree(random, depth) for name in random.sample(NAMES, random.randint(0, 4))}


def envelope(schema: Any, payload: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload}, ensure_ascii=False).encode()


def records(random: Random, count: int, *, part: str = "value", shape: str | None = None) -> list[dict[str, Any]]:
    """Of one or two shapes; `part` is the one that a transform is about."""
    shapes = [_shape(random, shape) for _ in range(random.choice([1, 1, 1, 2]))]
    valid = random.random() < 0.7
    found = []
    for offset in range(count):
        of = random.choice(shapes)
        about: bytes | None
        if random.random() < 0.06:
            about = None
        elif of is None:
            about = envelope(None, mapping(random) if random.random() < 0.85 else tree(random))
        else:
            about = envelope(
                of, payload(random, {**of, "optional": of["optional"] and random.random() < 0.3}, valid=valid)
            )
        other = random.choice([None, envelope({"type": "string", "optional": False}, "k"), envelope(None, {"a": 1})])
        headers = [
            [random.choice(NAMES[:3]), base64.b64encode(random.choice(TEXTS).encode()).decode()]
            for _ in range(random.choice([0, 0, 1, 3]))
        ]
        key, value = (about, other) if part == "key" else (other, about)
        found.append(
            {
                "topic": random.choice(["orders", "orders-eu", "a.b", "x1"]),
                "partition": random.randint(0, 3),
                "offset": offset,
                "timestamp": None if random.random() < 0.05 else abs(moment(random)),
                "key": None if key is None else base64.b64encode(key).decode(),
                "value": None if value is None else base64.b64encode(value).decode(),
                "headers": headers,
            }
        )
    return found


def _shape(random: Random, shape: str | None) -> dict[str, Any] | None:
    chance = random.random()
    if chance < 0.3:
        return None
    if shape == "time" and chance < 0.7:
        return schema(random, kinds=["Date", "Time", "Timestamp", "int64", "string"], plain=True)
    if shape == "any" and chance < 0.5:
        return schema(random, 1)
    if shape == "whole" and chance < 0.8:
        return schema(random, kinds=PRIMITIVES)
    if shape == "nested" or chance < 0.5:
        return struct(random, 2)
    return struct(random, 1)


# --- settings of transforms


def _names(random: Random, least: int = 1) -> str:
    return ",".join(random.sample(NAMES[:4], random.randint(least, 3)))


def _maybe(random: Random, made: dict[str, str], **more: str) -> dict[str, str]:
    for name, value in more.items():
        if random.random() < 0.4:
            made[name.replace("_", ".")] = value
    return made


TYPES = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"]
FORMATS = [
    "yyyy-MM-dd",
    "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
    "HH:mm:ss.SSS'Z'",
    "yyyyMMddHHmmss",
    "EEE, d MMM yyyy hh:mm a",
    "yy/M/d",
    "D HH",
]
DATES = ["yyyyMMdd", "yyyy-MM-dd-HH", "MMM_yyyy", "yy.MM.dd", "'y'yyyy", "EEEE"]


def settings(random: Random, name: str) -> dict[str, str]:
    nulls = random.choice(["true", "false"])
    if name == "Cast":
        if random.random() < 0.4:
            return _maybe(random, {"spec": random.choice(TYPES)}, replace_null_with_default=nulls)
        fields = random.sample(NAMES[:5], random.randint(1, 4))
        spec = ",".join(f"{field}:{random.choice(TYPES)}" for field in fields)
        return _maybe(random, {"spec": spec}, replace_null_with_default=nulls)
    if name == "DropHeaders":
        return {"headers": _names(random)}
    if name == "ExtractField":
        made = {
            "field": random.choice([*NAMES, "a.b", "c.d", "`e.f`.a"]),
            "field.syntax.version": random.choice(["V1", "V2"]),
        }
        return _maybe(random, made, replace_null_with_default=nulls)
    if name == "Flatten":
        return _maybe(random, {}, delimiter=random.choice([".", "_", "--"]))
    if name == "HeaderFrom":
        fields = random.sample(NAMES[:4], random.randint(1, 2))
        made = {"fields": ",".join(fields), "headers": ",".join(f"h{field}" for field in fields)}
        return _maybe(random, {**made, "operation": random.choice(["move", "copy"])}, replace_null_with_default=nulls)
    if name == "HoistField":
        return {"field": random.choice(NAMES)}
    if name == "InsertField":
        made = {random.choice(["topic.field", "timestamp.field"]): random.choice(["new", "other!", "a?"])}
        more = {"partition_field": "p!", "offset_field": "o", "replace_null_with_default": nulls}
        if random.random() < 0.4:
            made |= {"static.field": random.choice(["s", "b!"]), "static.value": "fixed"}
        return _maybe(random, made, **more)
    if name == "InsertHeader":
        return {
            "header": "h",
            "value.literal": random.choice([*TEXTS[1:], '{"a":1}', "[1,2.5]", "[]", "null", "123456789012"]),
        }
    if name == "MaskField":
        return _maybe(
            random,
            {"fields": _names(random)},
            replacement=random.choice(["12", "xy", "1.5"]),
            replace_null_with_default=nulls,
        )
    if name == "RegexRouter":
        regex = random.choice(
            ["(.*)", "orders(-.*)?", "(?<p>[a-z]+)[0-9]", "[^.]+", "o.*|a.*", "\\w+", "(a)\\.(b)", "\\Qa.b\\E", "ord"]
        )
        return {"regex": regex, "replacement": random.choice(["new", "$0-x", "n$1", "${p}_", "a\\$b", "x$12"])}
    if name == "ReplaceField":
        made = _maybe(random, {}, exclude=_names(random), include=_names(random), replace_null_with_default=nulls)
        if random.random() < 0.5:
            # Two fields with one new name are in the order of Java's hashes, where there is no schema.
            olds, news = random.sample(NAMES[:4], 2), random.sample(["x", "y", "z"], 2)
            made["renames"] = ",".join(f"{old}:{new}" for old, new in zip(olds, news, strict=True))
        return made
    if name == "SetSchemaMetadata":
        made = random.choice(
            [{"schema.name": "new.Name"}, {"schema.version": "7"}, {"schema.name": "N", "schema.version": "2"}]
        )
        return _maybe(random, dict(made), replace_null_with_default=nulls)
    if name == "TimestampConverter":
        made = {
            "target.type": random.choice(["string", "unix", "Date", "Time", "Timestamp"]),
            "field": random.choice(["", "", "a", "b", "c"]),
        }
        if made["target.type"] == "string" or random.random() < 0.6:
            made["format"] = random.choice(FORMATS)
        if random.random() < 0.4:
            made["unix.precision"] = random.choice(["milliseconds", "microseconds"])
        if made["target.type"] in ("string", "unix") and random.random() < 0.3:
            # Of seconds, most moments are after the year 9999, which Python's have not.
            made["unix.precision"] = "seconds"
        return _maybe(random, made, replace_null_with_default=nulls)
    if name == "TimestampRouter":
        return _maybe(
            random,
            {},
            timestamp_format=random.choice(DATES),
            topic_format=random.choice(["${timestamp}_${topic}", "t", "${topic}${topic}"]),
        )
    if name == "ValueToKey":
        return _maybe(random, {"fields": _names(random)}, replace_null_with_default=nulls)
    return {}


SHAPES = {
    "TimestampConverter": "time",
    "Flatten": "nested",
    "ExtractField": "nested",
    "HoistField": "any",
    "SetSchemaMetadata": "any",
    "Cast": "whole",
}


# --- bytes for converters

TOKENS = [
    "true",
    "false",
    "null",
    "1",
    "-12",
    "300",
    "1.5",
    "99999999999",
    "1e40",
    "abc",
    ",",
    ":",
    "[",
    "]",
    "{",
    "}",
    '"',
    "\\",
    " ",
    "2020-02-29",
    "2020-02-29T12:30:00.250Z",
    "12:30:00.250Z",
    "+7",
    "0.1",
    "-0",
    "1e-3",
    "12345678901234567890123",
]
ODD_JSON = [
    "",
    " ",
    "null",
    "{",
    "[1,]",
    "007",
    "-01",
    '{"a":007,"b":"007"}',
    "1 2",
    "1x",
    '{"a":1} x',
    "truex",
    "nul",
    "NaN",
    '"a" b',
    "[1]]",
    '{"a":1,"a":2}',
    "1.50",
    "123456789012345678901234567890",
    '"\\u00e4"',
    "\ufeff1",
    "-",
    "1e400",
    "'a'",
]


def literal(random: Random) -> str:
    if random.random() < 0.5:
        return "".join(random.choice(TOKENS) for _ in range(random.randint(1, 5)))
    if random.random() < 0.5:
        return "[" + ",".join(random.choice(TOKENS[:8]) for _ in range(random.randint(0, 3))) + "]"
    entries = (
        f"{random.choice(['1', '2', chr(34) + 'a' + chr(34), '300'])}:{random.choice(TOKENS[:8])}"
        for _ in range(random.randint(0, 3))
    )
    return "{" + ",".join(entries) + "}"


def data(random: Random, class_name: str, config: dict[str, str]) -> bytes | None:
    if random.random() < 0.05:
        return None
    if class_name == "JsonConverter":
        return _json(random, config)
    if class_name == "SimpleHeaderConverter":
        return literal(random).encode()
    if class_name in ("StringConverter", "ByteArrayConverter"):
        return random.choice(
            [
                random.choice(TEXTS).encode(),
                random.choice(TEXTS).encode("utf-16"),
                random.randbytes(random.randint(0, 4)),
            ]
        )
    size = {"ShortConverter": 2, "IntegerConverter": 4, "FloatConverter": 4, "BooleanConverter": 1}.get(class_name, 8)
    if random.random() < 0.15:
        return random.randbytes(random.randint(0, 9))
    return random.choice([b"\0", b"\1", b"\2"]) if size == 1 and random.random() < 0.8 else random.randbytes(size)


def _json(random: Random, config: dict[str, str]) -> bytes:
    if config.get("schemas.enable") == "false":
        return random.choice(ODD_JSON).encode() if random.random() < 0.3 else json.dumps(tree(random, 3)).encode()
    if "schema.content" in config:
        of = json.loads(config["schema.content"])
        return json.dumps(payload(random, of)).encode()
    chance = random.random()
    if chance < 0.1:
        return random.choice(ODD_JSON).encode()
    if chance < 0.2:
        broken = schema(random, 2)
        broken.pop(random.choice([name for name in broken if name != "parameters"]), None)
        return envelope(broken, payload(random, schema(random, 1)))
    if chance < 0.3:
        return envelope(None, tree(random))
    of = schema(random, 3)
    made = payload(random, of, valid=random.random() < 0.6)
    if chance < 0.4:
        return json.dumps({"payload": made, "schema": of}, indent=random.choice([None, 1])).encode()
    return envelope(of, made)


def converter_config(random: Random, class_name: str) -> dict[str, str]:
    if class_name == "StringConverter":
        return _maybe(random, {}, converter_encoding=random.choice(["UTF-8", "ISO-8859-1", "UTF-16BE"]))
    if class_name != "JsonConverter":
        return {}
    made = _maybe(
        random,
        {},
        replace_null_with_default="false",
        decimal_format=random.choice(["numeric", "BASE64"]),
        schemas_cache_size="3",
    )
    if random.random() < 0.3:
        made["schemas.enable"] = "false"
    elif random.random() < 0.3:
        made["schema.content"] = json.dumps(schema(random, 2))
    return made
