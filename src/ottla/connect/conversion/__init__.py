"""Between topics and connectors: converters (bytes and records), transforms, predicates, and what failed on the way.

To trace a sink's rows, read `sink.py` (bytes to runs of one shape) -> `converters/` -> `running.py` (`transformed`:
each transform over each run, in columns where it can be) -> `transforms/` -> `rows.py` (`in_order`: back into the order
in which they came). `source.py` goes the other way. `settings.py` makes all of it from a connector's configuration.

It runs on Spark's executors, and needs nothing but PyArrow.
"""

from ottla.connect.conversion.failures import ConversionFailed, Failed, Stage, dead_letter_headers
from ottla.connect.conversion.settings import ERROR_SETTINGS, config_def
from ottla.connect.conversion.sink import Converted, SinkConversion, sink_side
from ottla.connect.conversion.source import Encoded, SourceConversion, source_side

__all__ = [
    "ERROR_SETTINGS",
    "ConversionFailed",
    "Converted",
    "Encoded",
    "Failed",
    "SinkConversion",
    "SourceConversion",
    "Stage",
    "config_def",
    "dead_letter_headers",
    "sink_side",
    "source_side",
]
