"""Settings of converters, transforms and predicates in a connector's configuration, and what is made from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ottla.connect.api.config import NO_DEFAULT, ConfigDef, ConfigInvalid, ConfigKey, ConfigType, Importance
from ottla.connect.conversion import converters, predicates, transforms
from ottla.connect.conversion.converters.base import Converter
from ottla.connect.conversion.errors import RecordError
from ottla.connect.conversion.predicates import Predicate
from ottla.connect.conversion.transforms.base import Transform

JSON = "org.apache.kafka.connect.json.JsonConverter"
SIMPLE = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_PARTS = {
    "key.converter": ("How keys are read and written: the class of a converter.", JSON),
    "value.converter": ("How values are read and written: the class of a converter.", JSON),
    "header.converter": ("How headers are read and written: the class of a converter.", SIMPLE),
}
_TRANSFORMS, _PREDICATES = "Transforms", "Predicates"

# What `errors.*` means here: the worker has these in its own definition, with the settings of dead letters.
ERROR_SETTINGS = ConfigDef(
    (
        ConfigKey(
            "errors.tolerance",
            ConfigType.STRING,
            "What a record that cannot be converted does: none, it fails the connector; all, it is passed over.",
            "none",
            check=lambda text: None if text in ("none", "all") else "it is none or all.",
            recommended=("none", "all"),
            group="Error Handling",
        ),
        ConfigKey(
            "errors.retry.timeout",
            ConfigType.LONG,
            "For how many milliseconds what may pass by itself, as a registry that is away, is tried again: 0 not at "
            "all, -1 without end.",
            0,
            group="Error Handling",
        ),
        ConfigKey(
            "errors.retry.delay.max.ms",
            ConfigType.LONG,
            "The longest pause between two attempts, in milliseconds.",
            60000,
            group="Error Handling",
        ),
    )
)


def _converter_class(text: str) -> str | None:
    return None if text in converters.BY_NAME else f"Class {text} could not be found: {_listed(converters.BY_NAME)}."


def _transform_class(text: str) -> str | None:
    return None if text in transforms.BY_NAME else f"Class {text} could not be found: {_listed(transforms.BY_NAME)}."


def _predicate_class(text: str) -> str | None:
    return None if text in predicates.BY_NAME else f"Class {text} could not be found: {_listed(predicates.BY_NAME)}."


def _listed(known: Mapping[str, Any]) -> str:
    return "there are " + ", ".join(name for name in known if "." in name)


def _aliases(names: list[str]) -> str | None:
    return "an alias stands in the list twice." if len(set(names)) < len(names) else None


_ALIASES = {
    "transforms": (
        ConfigKey(
            "transforms", ConfigType.LIST, "Aliases of transforms, in their order.", [], Importance.LOW, _aliases,
            group=_TRANSFORMS,
        ),
    ),
    "predicates": (
        ConfigKey(
            "predicates", ConfigType.LIST, "Aliases of predicates for transforms.", [], Importance.LOW, _aliases,
            group=_PREDICATES,
        ),
    ),
}  # fmt: skip


def config_def(config: Mapping[str, str]) -> ConfigDef:
    """Of what the configuration names: with other classes and aliases there are other settings. What is wrong only in
    several settings together is the error of `type`, or of the converter's class."""
    found: list[ConfigKey] = []
    for name, (doc, default) in _PARTS.items():
        made = converters.BY_NAME.get(config.get(name, default).strip())
        check = _both(_converter_class, _made_from(config, f"{name}.", made, partial(_converter, made, name)))
        known = tuple(each.class_name for each in converters.ALL)
        found.append(ConfigKey(name, ConfigType.CLASS, doc, default, Importance.LOW, check, known))
        found += _prefixed(made.config_def if made is not None else ConfigDef(), f"{name}.", None)
    found += _ALIASES["transforms"]
    for alias in aliases(config, "transforms"):
        prefix = f"transforms.{alias}."
        named = transforms.BY_NAME.get(config.get(f"{prefix}type", "").strip())
        made_transform = None if named is None else named[0]
        group = f"{_TRANSFORMS}: {alias}"
        check = _both(
            _transform_class,
            _made_from(config, prefix, made_transform, partial(_transform, named)),
        )
        doc = f"The class of the transform '{alias}'."
        known = tuple(name for name in transforms.BY_NAME if "." in name)
        found.append(
            ConfigKey(f"{prefix}type", ConfigType.CLASS, doc, NO_DEFAULT, Importance.HIGH, check, known, group)
        )
        found += _prefixed(made_transform.config_def if made_transform is not None else ConfigDef(), prefix, group)
        found.append(
            ConfigKey(
                f"{prefix}predicate",
                ConfigType.STRING,
                f"The alias of a predicate: the transform '{alias}' is for records that it is true of.",
                None,
                check=_known_predicate(config),
                group=group,
            )
        )
        found.append(
            ConfigKey(
                f"{prefix}negate",
                ConfigType.BOOLEAN,
                f"Whether the transform '{alias}' is for records that the predicate is not true of.",
                False,
                group=group,
            )
        )
    found += _ALIASES["predicates"]
    for alias in aliases(config, "predicates"):
        prefix, group = f"predicates.{alias}.", f"{_PREDICATES}: {alias}"
        predicate = predicates.BY_NAME.get(config.get(f"{prefix}type", "").strip())
        doc = f"The class of the predicate '{alias}'."
        known = tuple(name for name in predicates.BY_NAME if "." in name)
        found.append(
            ConfigKey(
                f"{prefix}type", ConfigType.CLASS, doc, NO_DEFAULT, Importance.HIGH, _predicate_class, known, group
            )
        )
        found += _prefixed(predicate.config_def if predicate is not None else ConfigDef(), prefix, group)
    return ConfigDef(found)


Check = Callable[[Any], str | None]


def _both(one: Check, other: Check) -> Check:
    return lambda value: one(value) or other(value)


def _made_from(config: Mapping[str, str], prefix: str, kind: Any, make: Callable[[dict[str, Any]], Any]) -> Check:
    def check(_: Any) -> str | None:
        if kind is None:
            return None
        own = without_prefix(config, prefix)
        if any(value.errors for value in kind.config_def.validate(own)):
            return None  # said where it belongs
        try:
            make(kind.config_def.parse(own))
        except (ConfigInvalid, RecordError) as error:
            return str(error)
        return None

    return check


def _known_predicate(config: Mapping[str, str]) -> Check:
    return lambda alias: (
        None if alias in aliases(config, "predicates") else f"there is no predicate '{alias}' in `predicates`."
    )


def _prefixed(definition: ConfigDef, prefix: str, group: str | None) -> list[ConfigKey]:
    return [replace(key, name=f"{prefix}{key.name}", group=group or key.group) for key in definition.keys]


def aliases(config: Mapping[str, str], name: str) -> list[str]:
    return [alias for part in config.get(name, "").split(",") if (alias := part.strip())]


def without_prefix(config: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): text for name, text in config.items() if name.startswith(prefix)}


# --- what is made


@dataclass(frozen=True)
class Step:
    """A transform, and which records it is for."""

    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False


@dataclass(frozen=True)
class Parts:
    key: Converter
    value: Converter
    header: Converter
    steps: tuple[Step, ...]
    tolerates: bool
    retry_timeout_ms: int
    retry_delay_max_ms: int


def _converter(kind: type[Converter] | None, name: str, settings: dict[str, Any]) -> Converter:
    assert kind is not None
    return kind(settings, is_key=name == "key.converter")


def _transform(named: tuple[type[Transform], str] | None, settings: dict[str, Any]) -> Transform:
    assert named is not None
    return named[0](settings, named[1])


def parts_of(config: Mapping[str, str]) -> Parts:
    """Raises ConfigInvalid, which names every setting that is wrong."""
    config_def(config).parse(config)
    errors = ERROR_SETTINGS.parse(config)
    made = []
    for name, (_, default) in _PARTS.items():
        kind = converters.BY_NAME[config.get(name, default).strip()]
        settings = kind.config_def.parse(without_prefix(config, f"{name}."))
        made.append(_converter(kind, name, settings))
    return Parts(
        key=made[0],
        value=made[1],
        header=made[2],
        steps=tuple(_step(config, alias) for alias in aliases(config, "transforms")),
        tolerates=errors["errors.tolerance"] == "all",
        retry_timeout_ms=errors["errors.retry.timeout"],
        retry_delay_max_ms=errors["errors.retry.delay.max.ms"],
    )


def _step(config: Mapping[str, str], alias: str) -> Step:
    own = without_prefix(config, f"transforms.{alias}.")
    kind, part = transforms.BY_NAME[own["type"].strip()]
    transform = kind(kind.config_def.parse(own), part)
    if (name := own.get("predicate")) is None:
        return Step(transform)
    its = without_prefix(config, f"predicates.{name.strip()}.")
    predicate = predicates.BY_NAME[its["type"].strip()]
    negate = own.get("negate", "false").strip().lower() == "true"
    return Step(transform, predicate(predicate.config_def.parse(its)), negate)
