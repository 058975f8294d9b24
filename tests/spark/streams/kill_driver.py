"""A driver to be killed: the application of `killed_topology`, started again by itself whenever its query ends.

python -m tests.spark.streams.kill_driver '{"bootstrap": ..., "folder": ..., "master": ...}'
"""

from __future__ import annotations

import json
import sys
import time

import ottla.spark
from ottla.streams.engine import housekeeping
from ottla.streams.engine.application import StreamsApplication
from tests.spark.streams.killed_topology import APPLICATION, topology


def main() -> None:
    settings = json.loads(sys.argv[1])
    housekeeping.PURGE_S = 0.5
    spark = ottla.spark.session(app="kills", master=settings["master"], **{"spark.ui.enabled": False})
    spark.sparkContext.setLogLevel("OFF")
    application = StreamsApplication(topology(), application_id=APPLICATION, bootstrap=settings["bootstrap"])
    print("up", flush=True)
    while True:
        try:
            query = application.start(spark, checkpoint=settings["folder"] + "/checkpoint", maxOffsetsPerTrigger=2_000)
            query.awaitTermination()
        except Exception as problem:  # whatever a kill may look like from here: the query starts again
            print(f"restart: {problem}"[:300], flush=True)
            time.sleep(0.3)


if __name__ == "__main__":
    main()
