"""Word count: how often each word was said.

python examples/streams/word_count.py                                # on the lines below, without Spark
ottla streams run examples/streams/word_count.py --create-topics     # on the topics of a cluster
"""

from __future__ import annotations

from showing import Row, show

from ottla.streams import Application, StreamsBuilder, serdes

builder = StreamsBuilder(key=serdes.string, value=serdes.string)
words = builder.stream("lines").flat_map_values(lambda line: line.lower().split())
counts = words.group_by(lambda key, word: word).count(store="counts")
counts.to_stream().to("word-counts", value=serdes.integer)

app = Application("word-count", builder)

ROWS: list[Row] = [("lines", None, "to be or not to be", 0), ("lines", None, "that is the question", 1_000)]

if __name__ == "__main__":
    show(app, ROWS, "word-counts")
