"""Ottla Streams: the Kafka Streams model in Python. Programs are tested without a broker and run on Spark."""

from __future__ import annotations

from ottla.streams import batches, serdes
from ottla.streams.dsl.builder import StreamsBuilder
from ottla.streams.dsl.grouped import CogroupedKStream, KGroupedStream, KGroupedTable
from ottla.streams.dsl.kstream import BranchedKStream, KStream
from ottla.streams.dsl.ktable import GlobalKTable, KTable
from ottla.streams.errors import ErrorHandling, OnError, RecordFailed
from ottla.streams.operators.batches import Batch
from ottla.streams.operators.suppress import Suppressed
from ottla.streams.processing.processor import Processor, ProcessorContext
from ottla.streams.processing.punctuation import PunctuationType
from ottla.streams.program import Application
from ottla.streams.record import Record, RecordMetadata, ValueAndTimestamp
from ottla.streams.sql.statement import Sql, sql
from ottla.streams.state.specs import key_value_store, session_store, timestamped_store, versioned_store, window_store
from ottla.streams.test_driver import TopologyTestDriver
from ottla.streams.topology import Topology
from ottla.streams.windows import (
    JoinWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    UnlimitedWindows,
    Window,
    Windowed,
    days,
    hours,
    minutes,
    seconds,
)

__all__ = [
    "Application",
    "Batch",
    "BranchedKStream",
    "CogroupedKStream",
    "ErrorHandling",
    "GlobalKTable",
    "JoinWindows",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "OnError",
    "Processor",
    "ProcessorContext",
    "PunctuationType",
    "Record",
    "RecordFailed",
    "RecordMetadata",
    "SessionWindows",
    "SlidingWindows",
    "Sql",
    "StreamsBuilder",
    "Suppressed",
    "TimeWindows",
    "Topology",
    "TopologyTestDriver",
    "UnlimitedWindows",
    "ValueAndTimestamp",
    "Window",
    "Windowed",
    "batches",
    "days",
    "hours",
    "key_value_store",
    "minutes",
    "seconds",
    "serdes",
    "session_store",
    "sql",
    "timestamped_store",
    "versioned_store",
    "window_store",
]
