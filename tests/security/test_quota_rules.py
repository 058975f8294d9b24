"""Which limit holds for whom, and how long somebody waits who is over it."""

from __future__ import annotations

import itertools
import tracemalloc
from typing import Any

import pytest

from ottla.metadata.quotas import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    ClientQuota,
    decode_quota,
    encode_quota,
    entity_of,
    quota_id,
)
from ottla.security.quotas import ClientQuotas, Limits, Windows
from ottla.security.rates import SampledRate, TokenBucket

WINDOWS = Windows(11, 1000)

# Kafka's order, the most specific first; and whose count the limit is for ada's client app.
LEVELS: list[tuple[dict[str, str | None], tuple[str | None, str | None]]] = [
    ({"user": "ada", "client-id": "app"}, ("ada", "app")),
    ({"user": "ada", "client-id": None}, ("ada", "app")),
    ({"user": "ada"}, ("ada", None)),
    ({"user": None, "client-id": "app"}, ("ada", "app")),
    ({"user": None, "client-id": None}, ("ada", "app")),
    ({"user": None}, ("ada", None)),
    ({"client-id": "app"}, (None, "app")),
    ({"client-id": None}, (None, "app")),
]


def quota(entity: dict[str, str | None], **values: float) -> ClientQuota:
    return ClientQuota(entity_of(entity), values)


def machine(*known: ClientQuota, windows: Windows = WINDOWS) -> ClientQuotas:
    made = ClientQuotas(windows, windows)
    made.replace(known)
    return made


class TestWhoseLimit:
    def test_the_most_specific_of_those_that_are_set_counts(self) -> None:
        """All 256 sets of the eight levels."""
        for chosen in itertools.product([False, True], repeat=8):
            known = [
                quota(entity, producer_byte_rate=float(number + 1))
                for number, ((entity, _), is_set) in enumerate(zip(LEVELS, chosen, strict=True))
                if is_set
            ]
            found = Limits(known, PRODUCER_BYTE_RATE).of_client("ada", "app")
            if not any(chosen):
                assert found is None
            else:
                first = chosen.index(True)
                assert found is not None and (found.rate, found.owner) == (first + 1, LEVELS[first][1]), chosen

    def test_a_limit_of_somebody_else_does_not_count(self) -> None:
        others = [
            quota({"user": "bob"}, producer_byte_rate=1.0),
            quota({"user": "bob", "client-id": "app"}, producer_byte_rate=1.0),
            quota({"user": "ada", "client-id": "other"}, producer_byte_rate=1.0),
            quota({"client-id": "other"}, producer_byte_rate=1.0),
            quota({"ip": None}, connection_creation_rate=1.0),
        ]
        assert Limits(others, PRODUCER_BYTE_RATE).of_client("ada", "app") is None

    def test_each_kind_of_limit_is_looked_for_by_itself(self) -> None:
        known = [
            quota({"user": "ada", "client-id": "app"}, producer_byte_rate=1.0),
            quota({"user": None}, consumer_byte_rate=2.0),
        ]
        produce, fetch = Limits(known, PRODUCER_BYTE_RATE), Limits(known, CONSUMER_BYTE_RATE)
        assert (produce.of_client("ada", "app") or pytest.fail()).rate == 1
        assert (fetch.of_client("ada", "app") or pytest.fail()).rate == 2
        assert not Limits(known, REQUEST_PERCENTAGE) and not Limits(known, CONTROLLER_MUTATION_RATE)

    def test_an_address_has_its_own_limit_or_the_default(self) -> None:
        known = [
            quota({"ip": "10.0.0.1"}, connection_creation_rate=1.0),
            quota({"ip": None}, connection_creation_rate=9.0),
        ]
        limits = Limits(known, CONNECTION_CREATION_RATE)
        assert limits.of_address("10.0.0.1") == (1.0, ("10.0.0.1",))
        assert limits.of_address("10.0.0.2") == (9.0, ("10.0.0.2",))

    def test_clients_of_a_user_share_its_limit_and_those_of_the_default_user_share_nothing(self) -> None:
        quotas = machine(
            quota({"user": "ada"}, producer_byte_rate=10.0), quota({"user": None}, producer_byte_rate=10.0)
        )
        assert quotas.produced("ada", "one", 100, 0) == 0
        assert quotas.produced("ada", "two", 100, 0) > 0, "100 bytes were ada's by then"
        assert quotas.produced("bob", "one", 100, 0) == 0 == quotas.produced("eve", "one", 100, 0)

    def test_a_quota_is_read_as_it_was_written(self) -> None:
        for entity, _ in LEVELS:
            one = quota(entity, producer_byte_rate=1.5)
            assert decode_quota(encode_quota(one)) == one
        assert len({quota_id(entity_of(entity)) for entity, _ in LEVELS}) == len(LEVELS)


def used_over(quotas: ClientQuotas, size: int, seconds: float, pause_ms: int = 1) -> int:
    """What a client gets through that waits as it is told, on a clock that is moved."""
    now_ms, total = 1_000_000, 0
    end_ms = now_ms + seconds * 1000
    while now_ms < end_ms:
        total += size
        now_ms += max(quotas.produced("ada", "app", size, now_ms), pause_ms)
    return total


class TestRates:
    @pytest.mark.parametrize("windows", [Windows(11, 1000), Windows(5, 2000), Windows(3, 500), Windows(1, 1000)])
    @pytest.mark.parametrize("share", [0.01, 0.05, 0.4])
    def test_over_a_while_a_client_gets_what_it_was_given(self, windows: Windows, share: float) -> None:
        limit = 50_000.0
        quotas = machine(quota({"user": "ada"}, producer_byte_rate=limit), windows=windows)
        size = max(1, round(limit * share))
        seconds = 20 * windows.count * windows.ms / 1000
        assert used_over(quotas, size, seconds) / seconds == pytest.approx(limit, rel=0.1)

    @pytest.mark.parametrize("share", [0.01, 0.05, 0.1])
    def test_with_kafkas_windows_a_client_may_use_eleven_seconds_at_a_time(self, share: float) -> None:
        """So what it gets in half a minute depends on where that ends: ten seconds' worth goes at once, then nothing
        until it is forgotten, eleven seconds later. Over whole rounds of eleven seconds it is what was set."""
        quotas = machine(quota({"user": "ada"}, producer_byte_rate=50_000.0))
        size = round(50_000 * share)
        assert used_over(quotas, size, 33) / 33 == pytest.approx(50_000, rel=0.04)
        quotas = machine(quota({"user": "ada"}, producer_byte_rate=50_000.0))
        assert used_over(quotas, size, 30) / 30 == pytest.approx(50_000 * 1.1, rel=0.04)

    def test_a_client_below_its_limit_never_waits(self) -> None:
        quotas = machine(quota({"user": "ada"}, producer_byte_rate=1000.0))
        assert [quotas.produced("ada", "app", 99, ms) for ms in range(0, 60_000, 100)] == [0] * 600

    def test_who_begins_may_use_at_once_what_all_windows_but_one_allow(self) -> None:
        quotas = machine(quota({"user": "ada"}, producer_byte_rate=1000.0))
        assert quotas.produced("ada", "app", 10_000, 5) == 0
        assert quotas.produced("ada", "app", 1_000, 5) == 1_000, "ten percent over, of ten seconds"

    def test_the_wait_is_kafkas(self) -> None:
        """(rate - limit) / limit of the time that is measured, as its ClientQuotaManager has it."""
        rate = SampledRate(11, 1000)
        for ms in range(0, 2_001, 500):
            rate.record(4_000, ms)
        # 20,000 bytes over 10 s and none of the eleventh window.
        assert rate.per_second(2_000) == 2_000
        assert rate.throttle_ms(1_000, 2_000) == 10_000

    def test_what_was_long_ago_is_forgotten(self) -> None:
        rate = SampledRate(3, 1000)
        rate.record(1_000, 0)
        assert rate.per_second(2_999) > 0
        assert rate.per_second(3_000) == 0 and rate.is_idle(3_000)

    def test_a_fetch_that_is_not_answered_does_not_count(self) -> None:
        quotas = machine(quota({"user": "ada"}, consumer_byte_rate=1000.0))
        assert quotas.fetch_bytes_max("ada", "app") == 10_000 and quotas.fetch_bytes_max("bob", "app") is None
        assert quotas.to_fetch("ada", "app", 10_000, 0) == 0
        waits = [quotas.to_fetch("ada", "app", 5_000, 0) for _ in range(3)]
        assert waits == [5_000] * 3

    def test_a_batch_that_is_larger_than_a_quota_ever_allows_is_read_all_the_same(self) -> None:
        quotas = machine(quota({"user": "ada"}, consumer_byte_rate=1000.0))
        now_ms, read = 0, 0
        while now_ms < 300_000:
            wait_ms = quotas.to_fetch("ada", "app", 50_000, now_ms)
            read += not wait_ms
            now_ms += wait_ms or 1
        assert 3 <= read <= 300_000 / 11_000 + 1, "and at most one at a time counts"

    def test_time_is_bounded_to_a_window(self) -> None:
        quotas = machine(quota({"user": "ada"}, request_percentage=1.0))
        assert quotas.worked("ada", "app", 0.1, 0) == 0, "ten percent of a second are one of ten"
        assert quotas.worked("ada", "app", 5.0, 0) == 1000

    def test_a_limit_that_is_changed_counts_at_once_and_what_was_used_stays(self) -> None:
        quotas = machine(quota({"user": "ada"}, producer_byte_rate=1_000_000.0))
        assert quotas.produced("ada", "app", 20_000, 0) == 0
        quotas.replace([quota({"user": "ada"}, producer_byte_rate=1_000.0)])
        assert quotas.produced("ada", "app", 0, 0) == 10_000
        quotas.replace([])
        assert quotas.produced("ada", "app", 1 << 30, 0) == 0 and not quotas.are_set

    @pytest.mark.parametrize("limit", [1.0, 1e-9, 5e-324])
    def test_no_wait_is_longer_than_an_answer_can_say(self, limit: float) -> None:
        """A field of 32 bits has 24 days: 3 MB at a byte a second are more."""
        most = 2**31 - 1
        known = dict.fromkeys((PRODUCER_BYTE_RATE, CONSUMER_BYTE_RATE, CONTROLLER_MUTATION_RATE), limit)
        quotas = machine(quota({"user": "ada"}, **known))
        assert quotas.produced("ada", "app", 3_000_000, 0) == most
        assert quotas.to_fetch("ada", "app", 3_000_000, 0) == 0
        assert quotas.to_fetch("ada", "app", 3_000_000, 0) == most
        assert quotas.mutated("ada", "app", 3_000_000, 0) == most == quotas.before_mutation("ada", "app", 0)
        quotas = machine(quota({"user": "ada"}, request_percentage=limit))
        assert quotas.worked("ada", "app", 3_000_000.0, 0) == 1000


class TestNamesOfClients:
    """They are the client's choice: up to 32 KiB each, and another one with each request."""

    EVERYBODY = quota({"client-id": None}, producer_byte_rate=1000.0, controller_mutation_rate=1000.0)

    def test_long_ones_are_not_kept(self) -> None:
        quotas = machine(self.EVERYBODY)
        tracemalloc.start()
        for number in range(2_000):
            name = f"{number:032768}"
            assert quotas.produced("ada", name, 10, 0) == 0 == quotas.mutated("ada", name, 1, 0)
        kept, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert kept < 8 << 20, "64 MB of names"

    def test_long_ones_count_for_themselves_all_the_same(self) -> None:
        quotas = machine(self.EVERYBODY)
        one, other = "x" * 30_000 + "1", "x" * 30_000 + "2"
        assert quotas.produced("ada", one, 10_000, 0) == 0
        assert quotas.produced("ada", one, 1_000, 0) > 0
        assert quotas.produced("ada", other, 10_000, 0) == 0

    def test_one_more_of_many_costs_no_look_at_all_the_others(self, monkeypatch: pytest.MonkeyPatch) -> None:
        looks = 0
        for kind in (SampledRate, TokenBucket):

            def counted(self: Any, now_ms: int, before: Any = kind.is_idle) -> bool:
                nonlocal looks
                looks += 1
                return bool(before(self, now_ms))

            monkeypatch.setattr(kind, "is_idle", counted)
        quotas = machine(self.EVERYBODY)
        for number in range(15_000):
            quotas.produced("ada", str(number), 10, 0)
            quotas.mutated("ada", str(number), 1, 0)
        assert looks < 4 * 15_000
        for _ in range(25_000):
            number += 1
            quotas.produced("ada", str(number), 10, 60_000)
            quotas.mutated("ada", str(number), 1, 60_000)
        assert len(quotas._rates) < 30_000 > len(quotas._buckets), "those of a minute ago are forgotten"


class TestMutations:
    def test_a_bucket_fills_at_its_rate_and_is_overdrawn_once(self) -> None:
        bucket = TokenBucket(11, 1000)
        bucket.take(50, 2.0, 1_000)
        assert bucket.throttle_ms(2.0, 1_000) == 14_000, "22 were there, and two come in a second"
        assert bucket.throttle_ms(2.0, 15_000) == 0
        bucket.take(1, 2.0, 15_000)
        assert bucket.throttle_ms(2.0, 15_000) == 500

    def test_no_more_is_saved_up_than_all_windows_give(self) -> None:
        bucket = TokenBucket(11, 1000)
        bucket.take(0, 2.0, 0)
        bucket.take(23, 2.0, 3_600_000)
        assert bucket.throttle_ms(2.0, 3_600_000) == 500
