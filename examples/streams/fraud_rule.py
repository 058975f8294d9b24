"""A fraud rule with a processor and a timer: a card that is used in three countries within ten minutes is reported at
once; a card that nobody has used for an hour is forgotten by the timer.

    python examples/streams/fraud_rule.py
    ottla streams run examples/streams/fraud_rule.py --create-topics
"""

from __future__ import annotations

from showing import Row, show

from ottla.streams import (
    Application,
    Processor,
    ProcessorContext,
    PunctuationType,
    Record,
    StreamsBuilder,
    hours,
    key_value_store,
    minutes,
    serdes,
)

COUNTRIES = 3


class TooManyCountries(Processor):
    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        self._uses = context.store("uses")
        context.schedule(minutes(10), PunctuationType.STREAM_TIME, self._forget)

    def process(self, record: Record) -> None:
        recent = [use for use in self._uses.get(record.key) or [] if use[0] > record.timestamp - minutes(10)]
        recent.append([record.timestamp, record.value["country"]])
        countries = sorted({country for _, country in recent})
        if len(countries) >= COUNTRIES:
            self.context.forward(record.with_value({"rule": "countries", "countries": countries}))
            recent = []
        self._uses.put(record.key, recent)

    def _forget(self, now: int) -> None:
        for card, uses in list(self._uses.all()):
            if not uses or uses[-1][0] < now - hours(1):
                self._uses.delete(card)


builder = StreamsBuilder(key=serdes.string)
builder.add_store(key_value_store("uses", key=serdes.string))
builder.stream("card-payments").process(TooManyCountries, stores=["uses"], name="countries").to("suspicions")

app = Application("fraud-rule", builder)

ROWS: list[Row] = [
    ("card-payments", "card-1", {"country": "NL"}, minutes(0)),
    ("card-payments", "card-2", {"country": "NL"}, minutes(1)),
    ("card-payments", "card-1", {"country": "BR"}, minutes(2)),
    ("card-payments", "card-1", {"country": "JP"}, minutes(4)),
    ("card-payments", "card-2", {"country": "BR"}, minutes(90)),
]

if __name__ == "__main__":
    show(app, ROWS, "suspicions")
