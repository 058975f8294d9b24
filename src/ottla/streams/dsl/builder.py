"""`StreamsBuilder`: where a program begins.

builder = StreamsBuilder()
lines = builder.stream("lines", key=serdes.string, value=serdes.string)
counts = lines.flat_map_values(str.split).group_by(lambda key, word: word).count(store="counts")
counts.to_stream().to("counts", value=serdes.integer)
topology = builder.build()
"""

from __future__ import annotations

from collections.abc import Sequence

from ottla.streams import serdes
from ottla.streams.dsl.kstream import KStream
from ottla.streams.dsl.ktable import GlobalKTable, KTable
from ottla.streams.dsl.naming import Graph
from ottla.streams.operators.tables import TableSource
from ottla.streams.serdes import Serde
from ottla.streams.state.specs import StoreKind, StoreSpec
from ottla.streams.topology import TimestampExtractor, Topology
from ottla.streams.windows import Duration, to_ms


class StreamsBuilder:
    def __init__(
        self, *, key: Serde = serdes.json, value: Serde = serdes.json, merge_repartitions: bool = True
    ) -> None:
        """`key`, `value`: the serdes where no others are named. `merge_repartitions`: whether operators after the same
        change of a key share one repartition topic."""
        self._graph = Graph(key, value, merges_repartitions=merge_repartitions)

    def stream(
        self,
        topics: str | Sequence[str],
        *,
        key: Serde | None = None,
        value: Serde | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        reset: str = "earliest",
        name: str | None = None,
    ) -> KStream:
        """One or several topics. `timestamp_extractor` gets (key, value, the record's time, stream time) and gives the
        time that counts, in milliseconds."""
        graph = self._graph
        node = graph.name("KSTREAM-SOURCE", name)
        key, value = key or graph.default_key, value or graph.default_value
        graph.topology.add_source(
            node, topics, key=key, value=value, timestamp_extractor=timestamp_extractor, reset=reset
        )
        return KStream(graph, node, key, value, frozenset([node]))

    def table(
        self,
        topic: str,
        *,
        key: Serde | None = None,
        value: Serde | None = None,
        store: str | None = None,
        timestamp_extractor: TimestampExtractor | None = None,
        history: Duration | None = None,
        name: str | None = None,
    ) -> KTable:
        """The last value of each key of a topic; a record without a value deletes its key.

        `history` makes it a versioned table (KIP-914), which remembers so far back: a stream that is joined with it
        meets the value that was valid at the time of its record, and changes that come after a later one of their key
        do not overwrite it.
        """
        stream = self.stream(topic, key=key, value=value, timestamp_extractor=timestamp_extractor, name=name)
        history_ms = None if history is None else to_ms(history, "the history of a table")
        return KTable.of_stream(stream, store, None, history_ms=history_ms)

    def global_table(
        self, topic: str, *, key: Serde | None = None, value: Serde | None = None, store: str | None = None
    ) -> GlobalKTable:
        """A table that every task has all of, whatever the partitions."""
        graph = self._graph
        source = graph.name("KSTREAM-SOURCE")
        key, value = key or graph.default_key, value or graph.default_value
        graph.topology.add_source(source, topic, key=key, value=value)
        store_name = graph.name(f"{topic}-STATE-STORE", store)
        graph.topology.add_store(StoreSpec(store_name, StoreKind.TIMESTAMPED, key, value, is_logged=False))
        table = GlobalKTable(graph, store_name, key, value)
        node = graph.name("KTABLE-SOURCE")
        choice, old = table.choice, table.old
        graph.topology.add_operator(node, lambda: TableSource(choice, old), source, stores=[store_name])
        graph.topology.global_stores[store_name] = source
        return table

    def add_store(self, spec: StoreSpec) -> StreamsBuilder:
        """For processors, which name it in `process(..., stores=[...])`."""
        self._graph.topology.add_store(spec)
        return self

    def build(self) -> Topology:
        return self._graph.topology
