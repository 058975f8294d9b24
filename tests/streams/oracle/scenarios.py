"""The topologies of Oracle.java in Python: the same names, settings, topics (a, b, out) and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ottla.streams import (
    JoinWindows,
    KTable,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TimeWindows,
    Topology,
    UnlimitedWindows,
    Window,
    Windowed,
    key_value_store,
    serdes,
    session_store,
    timestamped_store,
    versioned_store,
    window_store,
)
from ottla.streams.record import ValueAndTimestamp

Settings = dict[str, Any]


def add(key: str, value: str, aggregate: str) -> str:
    return f"{aggregate}+{shown(value)}"


def less(key: str, value: str, aggregate: str) -> str:
    return f"{aggregate}-{shown(value)}"


def shown(value: str | None) -> str:
    """As Java writes it."""
    return "null" if value is None else value


def joined(left: str | None, right: str | None) -> str:
    return f"{shown(left)}|{shown(right)}"


def empty() -> str:
    return ""


def is_small(key: str, value: str) -> bool:
    return value < "c"


def by_letter(key: str, value: str) -> tuple[str, str]:
    return value[0], key


def window_shown(key: Any, value: Any) -> str:
    return f"{key.key}@{key.window.start}/{key.window.end}"


def time_windows(settings: Settings) -> TimeWindows:
    windows = TimeWindows.of(settings["size"], grace=settings["grace"])
    return windows.advance_by(settings["advance"]) if "advance" in settings else windows


def out(table: KTable) -> None:
    table.to_stream(window_shown).to("out")


def aggregated(windowed: Any, settings: Settings, *more: Any) -> KTable:
    chosen = windowed.emit_on_close() if "close" in settings else windowed
    table: KTable = chosen.aggregate(empty, *more)
    return table


class Collector(Processor):
    """Collects values by key and sends all of them whenever stream time has moved by an interval."""

    def __init__(self, every: int) -> None:
        self._every = every

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._seen = context.store("seen")
        context.schedule(self._every, PunctuationType.STREAM_TIME, self._send)

    def _send(self, now: int) -> None:
        for key, value in list(self._seen.all()):
            self.context.forward(Record(key, value, now))
            self._seen.delete(key)

    def process(self, record: Record) -> None:
        if record.key is not None and record.value is not None:
            self._seen.put(record.key, (self._seen.get(record.key) or "") + record.value)


class Silence(Processor):
    """Tells by the wall clock how many records it has seen since it last did."""

    def __init__(self, every: int) -> None:
        self._every = every

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._counts = context.store("counts")
        context.schedule(self._every, PunctuationType.WALL_CLOCK_TIME, self._tell)

    def _tell(self, now: int) -> None:
        self.context.forward(Record("all", self._counts.get("all") or "0", now))
        self._counts.delete("all")

    def process(self, record: Record) -> None:
        self._counts.put("all", str(int(self._counts.get("all") or "0") + 1))


class Keeper(Processor):
    """Puts each record into a store of a kind, and tells what the store then has of its key."""

    def __init__(self, store: str) -> None:
        self._name = store

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._store = context.store(self._name)

    def process(self, record: Record) -> None:
        if record.key is not None:
            found = self.put_and_look(record.key, record.value, record.timestamp)
            self.context.forward(Record(record.key, found, record.timestamp))

    def put_and_look(self, key: str, value: str | None, at: int) -> str:
        raise NotImplementedError


class KeyValueKeeper(Keeper):
    def put_and_look(self, key: str, value: str | None, at: int) -> str:
        before = self._store.put_if_absent(key, value) if at % 2 else self._store.get(key)
        if at % 2 == 0:
            self._store.put(key, value)
        pairs = "".join(f"{each}={found}," for each, found in self._store.range("k", "kk"))
        backwards = "".join(f"{each}={found}," for each, found in self._store.reverse_all())
        return f"{shown(before)};{pairs};{backwards}"


class TimestampedKeeper(Keeper):
    def put_and_look(self, key: str, value: str | None, at: int) -> str:
        before = self._store.get(key)
        self._store.put(key, None if value is None else ValueAndTimestamp(value, at))
        pairs = "".join(f"{each}={found.value}@{found.timestamp}," for each, found in self._store.all())
        return f"{'null' if before is None else f'{before.value}@{before.timestamp}'};{pairs}"


class WindowKeeper(Keeper):
    def put_and_look(self, key: str, value: str | None, at: int) -> str:
        self._store.put(key, value, at)
        own = "".join(f"{start}={found}," for start, found in self._store.fetch(key, max(0, at - 20), at + 20))
        every = [f"{window.key}@{window.window.start}={found}" for window, found in self._store.all()]
        return f"{shown(self._store.fetch(key, at))};{own};{','.join(sorted(every))}"


class SessionKeeper(Keeper):
    def put_and_look(self, key: str, value: str | None, at: int) -> str:
        self._store.put(Windowed(key, Window(max(0, at - 5), at)), value)
        near = "".join(f"{_session(each)}={found}," for each, found in self._store.find_sessions(key, at - 9, at + 9))
        own = "".join(f"{_session(each)}={found}," for each, found in self._store.fetch(key))
        return f"{near};{own};{shown(self._store.fetch_session(key, max(0, at - 5), at))}"


class VersionKeeper(Keeper):
    def put_and_look(self, key: str, value: str | None, at: int) -> str:
        if at % 3 == 0:
            before = self._store.delete(key, at)
            return f"{_version(before)};{_version(self._store.get(key))}"
        self._store.put(key, value, at)
        versions = [self._store.get(key, as_of) for as_of in (at, max(0, at - 10), at + 10)]
        return ";".join(map(_version, [*versions, self._store.get(key)]))


def _session(session: Any) -> str:
    return f"{session.window.start}/{session.window.end}"


def _version(found: Any) -> str:
    return "null" if found is None else f"{found.value}@{found.timestamp}"


def build(name: str, settings: Settings) -> Topology:
    builder = StreamsBuilder(key=serdes.string, value=serdes.string)
    add_scenario(name, builder, settings)
    return builder.build()


def add_scenario(name: str, builder: StreamsBuilder, settings: Settings) -> None:
    _SCENARIOS[name](builder, settings)


def scenario_names() -> list[str]:
    return list(_SCENARIOS)


def _count(builder: StreamsBuilder, settings: Settings) -> None:
    builder.stream("a").group_by_key().count().to_stream().map_values(str).to("out")


def _reduce(builder: StreamsBuilder, settings: Settings) -> None:
    builder.stream("a").group_by_key().reduce(lambda one, other: f"{one}+{other}").to_stream().to("out")


def _aggregate(builder: StreamsBuilder, settings: Settings) -> None:
    builder.stream("a").group_by_key().aggregate(empty, add).to_stream().to("out")


def _rekeyed(builder: StreamsBuilder, settings: Settings) -> None:
    grouped = builder.stream("a").group_by(lambda key, value: None if value is None else value[0])
    grouped.aggregate(empty, add).to_stream().to("out")


def _time_windows(builder: StreamsBuilder, settings: Settings) -> None:
    out(aggregated(builder.stream("a").group_by_key().windowed_by(time_windows(settings)), settings, add))


def _unlimited(builder: StreamsBuilder, settings: Settings) -> None:
    windows = UnlimitedWindows.start_on(settings["start"])
    out(aggregated(builder.stream("a").group_by_key().windowed_by(windows), settings, add))


def _sliding(builder: StreamsBuilder, settings: Settings) -> None:
    windows = SlidingWindows.of(settings["size"], grace=settings["grace"])
    out(aggregated(builder.stream("a").group_by_key().windowed_by(windows), settings, add))


def _sessions_of(builder: StreamsBuilder, settings: Settings) -> KTable:
    windows = SessionWindows.with_gap(settings["gap"], grace=settings["grace"])
    grouped = builder.stream("a").group_by_key().windowed_by(windows)
    return aggregated(grouped, settings, add, lambda key, one, other: one + other)


def _sessions(builder: StreamsBuilder, settings: Settings) -> None:
    out(_sessions_of(builder, settings))


def _suppressed_windows(builder: StreamsBuilder, settings: Settings) -> None:
    table = builder.stream("a").group_by_key().windowed_by(time_windows(settings)).aggregate(empty, add)
    out(table.suppress(Suppressed.until_window_closes()))


def _suppressed_sessions(builder: StreamsBuilder, settings: Settings) -> None:
    out(_sessions_of(builder, settings).suppress(Suppressed.until_window_closes()))


def _suppressed_for_a_time(builder: StreamsBuilder, settings: Settings) -> None:
    suppressed = Suppressed.until_time_limit(settings["wait"]).at_most(records=settings["records"])
    builder.table("a").suppress(suppressed).to_stream().to("out")


def _table(builder: StreamsBuilder, settings: Settings) -> None:
    builder.table("a").to_stream().to("out")


def _table_filter(builder: StreamsBuilder, settings: Settings) -> None:
    builder.table("a").filter(is_small).to_stream().to("out")


def _kept_table_filter(builder: StreamsBuilder, settings: Settings) -> None:
    builder.table("a", store="kept").filter(is_small, store="filtered").to_stream().to("out")


def _table_map(builder: StreamsBuilder, settings: Settings) -> None:
    builder.table("a").map_values(lambda value: value + "!").filter(is_small).to_stream().to("out")


def _grouped_table(builder: StreamsBuilder, settings: Settings) -> None:
    builder.table("a").group_by(by_letter).aggregate(empty, add, less).to_stream().to("out")


def _counted_table(builder: StreamsBuilder, settings: Settings) -> None:
    builder.table("a").group_by(by_letter).count().to_stream().map_values(str).to("out")


def _reduced_table(builder: StreamsBuilder, settings: Settings) -> None:
    grouped = builder.table("a").filter(is_small).group_by(by_letter)
    grouped.reduce(lambda one, other: f"{one}+{other}", lambda one, other: f"{one}-{other}").to_stream().to("out")


def _to_table(builder: StreamsBuilder, settings: Settings) -> None:
    builder.stream("a").to_table(store="as-table").map_values(lambda value: value + "?").to_stream().to("out")


def _cogroup(builder: StreamsBuilder, settings: Settings) -> None:
    grouped = builder.stream("a").group_by_key().cogroup(add).cogroup(builder.stream("b").group_by_key(), less)
    grouped.aggregate(empty).to_stream().to("out")


def _windowed_cogroup(builder: StreamsBuilder, settings: Settings) -> None:
    grouped = builder.stream("a").group_by_key().cogroup(add).cogroup(builder.stream("b").group_by_key(), less)
    out(grouped.windowed_by(time_windows(settings)).aggregate(empty))


def _stream_join(builder: StreamsBuilder, settings: Settings) -> None:
    windows = JoinWindows.of(settings["before"], grace=settings["grace"]).after(settings["after"])
    left, right = builder.stream("a"), builder.stream("b")
    joins = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}
    joins[settings["kind"]](right, joined, windows).to("out")


def _stream_table_join(builder: StreamsBuilder, settings: Settings) -> None:
    left, right = builder.stream("a"), builder.table("b")
    {"inner": left.join, "left": left.left_join}[settings["kind"]](right, joined).to("out")


def _global_table_join(builder: StreamsBuilder, settings: Settings) -> None:
    left, right = builder.stream("a"), builder.global_table("b")

    def key_of(key: str, value: str | None) -> str | None:
        return None if value is None or value.startswith("d") else key

    {"inner": left.join, "left": left.left_join}[settings["kind"]](right, joined, key_of=key_of).to("out")


def _table_join(builder: StreamsBuilder, settings: Settings) -> None:
    left, right = builder.table("a"), builder.table("b")
    joins = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}
    table = joins[settings["kind"]](right, joined)
    if "grouped" in settings:
        table = table.group_by(lambda key, value: (value[0], value)).aggregate(empty, add, less)
    table.to_stream().to("out")


def foreign_key(value: str) -> str | None:
    """The letter of a value, as the other table has keys; none for d."""
    return {"a": "k", "b": "l", "c": "kk"}.get(value[0])


def _foreign_key_join(builder: StreamsBuilder, settings: Settings) -> None:
    left, right = builder.table("a"), builder.table("b")
    join = {"inner": left.join, "left": left.left_join}[settings["kind"]]
    table = join(right, joined, foreign_key=foreign_key)
    if "grouped" in settings:
        table = table.group_by(lambda key, value: (value[0], value)).aggregate(empty, add, less)
    table.to_stream().to("out")


def _versioned_join(builder: StreamsBuilder, settings: Settings) -> None:
    left, right = (
        builder.stream("a"),
        builder.table("b", store=f"versions-{settings['kind']}", history=settings["history"]),
    )
    if "filtered" in settings:
        right = right.filter(is_small)
    {"inner": left.join, "left": left.left_join}[settings["kind"]](right, joined).to("out")


def _versioned_group(builder: StreamsBuilder, settings: Settings) -> None:
    table = builder.table("a", store="versioned", history=settings["history"])
    table.group_by(by_letter).aggregate(empty, add, less).to_stream().to("out")


def _timer(builder: StreamsBuilder, settings: Settings) -> None:
    builder.add_store(key_value_store("seen", key=serdes.string, value=serdes.string))
    builder.stream("a").process(lambda: Collector(settings["every"]), stores=["seen"]).to("out")


def chained(one: str, other: str | None) -> str:
    return f"{one}+{shown(other)}"


def _windowed_reduce(builder: StreamsBuilder, settings: Settings) -> None:
    out(builder.stream("a").group_by_key().windowed_by(time_windows(settings)).reduce(chained))


def _sliding_reduce(builder: StreamsBuilder, settings: Settings) -> None:
    windows = SlidingWindows.of(settings["size"], grace=settings["grace"])
    out(builder.stream("a").group_by_key().windowed_by(windows).reduce(chained))


def _session_reduce(builder: StreamsBuilder, settings: Settings) -> None:
    windows = SessionWindows.with_gap(settings["gap"], grace=settings["grace"])
    out(builder.stream("a").group_by_key().windowed_by(windows).reduce(chained))


def _windowed_counts(builder: StreamsBuilder, settings: Settings) -> None:
    grouped = builder.stream("a").group_by_key()
    kinds: dict[str, Any] = {
        "time": TimeWindows.of(settings["size"], grace=settings["grace"]),
        "sliding": SlidingWindows.of(settings["size"], grace=settings["grace"]),
        "session": SessionWindows.with_gap(settings["size"], grace=settings["grace"]),
    }
    counts = grouped.windowed_by(kinds[settings["windows"]]).count()
    counts.to_stream(window_shown).map_values(lambda count: "null" if count is None else str(count)).to("out")


def _cogrouped(builder: StreamsBuilder) -> Any:
    return builder.stream("a").group_by_key().cogroup(add).cogroup(builder.stream("b").group_by_key(), less)


def _sliding_cogroup(builder: StreamsBuilder, settings: Settings) -> None:
    windows = SlidingWindows.of(settings["size"], grace=settings["grace"])
    out(_cogrouped(builder).windowed_by(windows).aggregate(empty))


def _session_cogroup(builder: StreamsBuilder, settings: Settings) -> None:
    windows = SessionWindows.with_gap(settings["gap"], grace=settings["grace"])
    out(_cogrouped(builder).windowed_by(windows).aggregate(empty, merger=lambda key, one, other: one + other))


def _regrouped_windows(builder: StreamsBuilder, settings: Settings) -> None:
    table = builder.stream("a").group_by_key().windowed_by(time_windows(settings)).reduce(chained)
    table.group_by(lambda window, value: (window.key, value)).aggregate(empty, add, less).to_stream().to("out")


def _self_join(builder: StreamsBuilder, settings: Settings) -> None:
    windows = JoinWindows.of(settings["before"], grace=settings["grace"]).after(settings["after"])
    stream = builder.stream("a")
    joins = {"inner": stream.join, "left": stream.left_join, "outer": stream.outer_join}
    joins[settings["kind"]](stream, joined, windows).to("out")


def _rekeyed_join(builder: StreamsBuilder, settings: Settings) -> None:
    stream = builder.stream("a").select_key(lambda key, value: foreign_key(value) if value else None)
    {"inner": stream.join, "left": stream.left_join}[settings["kind"]](builder.table("b"), joined).to("out")


def _rekeyed_stream_join(builder: StreamsBuilder, settings: Settings) -> None:
    windows = JoinWindows.of(settings["before"], grace=settings["grace"])

    def new_key(key: str | None, value: str | None) -> str | None:
        return foreign_key(value) if value else None

    left, right = (builder.stream(topic).select_key(new_key) for topic in "ab")
    joins = {"inner": left.join, "left": left.left_join, "outer": left.outer_join}
    joins[settings["kind"]](right, joined, windows).to("out")


def _three_tables(builder: StreamsBuilder, settings: Settings) -> None:
    first, second, third = builder.table("a"), builder.table("b"), builder.table("c")
    joins = {"inner": KTable.join, "left": KTable.left_join, "outer": KTable.outer_join}
    both = joins[settings["kind"]](first, second, joined)
    joins[settings["then"]](both, third, joined).to_stream().to("out")


def _stream_with_joined_tables(builder: StreamsBuilder, settings: Settings) -> None:
    joins = {"inner": KTable.join, "left": KTable.left_join, "outer": KTable.outer_join}
    table = joins[settings["kind"]](builder.table("a"), builder.table("b").filter(is_small), joined)
    builder.stream("c").left_join(table, joined).to("out")


def _versioned_table_join(builder: StreamsBuilder, settings: Settings) -> None:
    names = {topic: f"versions-{settings['kind']}-{topic}" for topic in "ab"}
    tables = [builder.table(topic, store=name, history=settings["history"]) for topic, name in names.items()]
    joins = {"inner": KTable.join, "left": KTable.left_join, "outer": KTable.outer_join}
    joins[settings["kind"]](*tables, joined).to_stream().to("out")


def _versioned_foreign_key(builder: StreamsBuilder, settings: Settings) -> None:
    names = {topic: f"keyed-versions-{settings['kind']}-{topic}" for topic in "ab"}
    left, right = (builder.table(topic, store=name, history=settings["history"]) for topic, name in names.items())
    join = {"inner": left.join, "left": left.left_join}[settings["kind"]]
    join(right, joined, foreign_key=foreign_key).to_stream().to("out")


def _filtered_group(builder: StreamsBuilder, settings: Settings) -> None:
    table = builder.table("a").filter_not(is_small).map_values(lambda value: value + "!")
    table.group_by(by_letter).aggregate(empty, add, less).to_stream().to("out")


def _merged(builder: StreamsBuilder, settings: Settings) -> None:
    merged = builder.stream("a").merge(builder.stream("b").repartition(name="again"))
    merged.group_by_key().aggregate(empty, add).to_stream().to("out")


def _strictly_suppressed(builder: StreamsBuilder, settings: Settings) -> None:
    suppressed = Suppressed.until_time_limit(settings["wait"])
    builder.stream("a").group_by_key().reduce(chained).suppress(suppressed).to_stream().to("out")


def _wall_clock(builder: StreamsBuilder, settings: Settings) -> None:
    builder.add_store(key_value_store("counts", key=serdes.string, value=serdes.string))
    builder.stream("a").process(lambda: Silence(settings["every"]), stores=["counts"]).to("out")


def _kept(builder: StreamsBuilder, settings: Settings) -> None:
    text: Any = {"key": serdes.string, "value": serdes.string}
    kind = settings["store"]
    name = f"kept-{kind.replace(' ', '-')}"
    kinds: dict[str, tuple[type[Keeper], Any]] = {
        "key value": (KeyValueKeeper, key_value_store(name, **text)),
        "timestamped": (TimestampedKeeper, timestamped_store(name, **text)),
        "window": (WindowKeeper, window_store(name, retention_ms=60, window_size_ms=10, **text)),
        "session": (SessionKeeper, session_store(name, retention_ms=60, **text)),
        "versioned": (VersionKeeper, versioned_store(name, history_ms=60, **text)),
    }
    keeper, spec = kinds[kind]
    builder.add_store(spec)
    builder.stream("a").process(lambda: keeper(name), stores=[name]).to("out")


_SCENARIOS: dict[str, Callable[[StreamsBuilder, Settings], None]] = {
    "count": _count,
    "reduce": _reduce,
    "aggregate": _aggregate,
    "rekeyed": _rekeyed,
    "time windows": _time_windows,
    "unlimited windows": _unlimited,
    "sliding windows": _sliding,
    "session windows": _sessions,
    "suppressed windows": _suppressed_windows,
    "suppressed sessions": _suppressed_sessions,
    "suppressed for a time": _suppressed_for_a_time,
    "table": _table,
    "table filter": _table_filter,
    "kept table filter": _kept_table_filter,
    "table map": _table_map,
    "grouped table": _grouped_table,
    "counted table": _counted_table,
    "reduced table": _reduced_table,
    "to table": _to_table,
    "cogroup": _cogroup,
    "windowed cogroup": _windowed_cogroup,
    "stream join": _stream_join,
    "stream table join": _stream_table_join,
    "global table join": _global_table_join,
    "table join": _table_join,
    "foreign key join": _foreign_key_join,
    "join with a versioned table": _versioned_join,
    "grouped versioned table": _versioned_group,
    "timer": _timer,
    "wall clock": _wall_clock,
    "windowed reduce": _windowed_reduce,
    "sliding reduce": _sliding_reduce,
    "session reduce": _session_reduce,
    "windowed counts": _windowed_counts,
    "sliding cogroup": _sliding_cogroup,
    "session cogroup": _session_cogroup,
    "regrouped windows": _regrouped_windows,
    "self join": _self_join,
    "rekeyed join": _rekeyed_join,
    "rekeyed stream join": _rekeyed_stream_join,
    "three tables": _three_tables,
    "stream with joined tables": _stream_with_joined_tables,
    "versioned table join": _versioned_table_join,
    "versioned foreign key": _versioned_foreign_key,
    "filtered group": _filtered_group,
    "merged": _merged,
    "suppressed without bounds": _strictly_suppressed,
    "kept": _kept,
}
