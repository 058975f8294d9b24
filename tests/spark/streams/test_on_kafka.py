"""Applications on Apache Kafka: the same tests as on Ottla, with the fixture of this module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.spark.streams import test_application, test_guarantees, test_queries, test_restarts
from tests.support.kafka_jars import require_kafka_libs
from tests.support.kafka_peer import KafkaPeer

pytestmark = [pytest.mark.jvm, pytest.mark.slow]


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    require_kafka_libs()
    with KafkaPeer(tmp_path_factory.mktemp("kafka")) as kafka:
        yield kafka.bootstrap


application = test_queries.application
test_queries_of_stores = test_queries.test_a_store_is_read_as_it_is_committed_over_all_partitions
test_everything = test_application.test_results_and_state_are_those_of_the_test_driver_across_restarts_and_a_lost_batch
test_at_least_once = test_guarantees.test_results_of_a_batch_that_is_broken_off_come_again_and_state_is_exact


class TestRestarts:
    test_purging = staticmethod(test_restarts.test_records_of_repartition_topics_are_deleted_when_they_were_processed)
    test_reset = staticmethod(
        test_restarts.test_an_application_that_is_forgotten_is_refused_until_its_state_is_deleted_too
    )
    test_aborted = staticmethod(
        test_restarts.test_state_is_restored_without_what_was_aborted_and_not_from_another_life_of_its_topics
    )
    test_partitions = staticmethod(
        test_restarts.test_partitions_that_are_added_to_an_input_are_read_where_no_state_lies_by_them
    )
