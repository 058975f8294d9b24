"""What each country buys in ten seconds: orders, joined with a table of customers, counted in windows, exactly once.
`make up` runs it; by hand:

    ottla topic create shop-orders shop-customers sales-by-country -p 2
    ottla pipeline run examples/sales_by_country.py
"""

from pyspark.sql import functions as F

from ottla.spark.pipeline import Topics, pipeline


@pipeline(to="sales-by-country", key=("window", "country"), mode="update", every="1 second")
def sales_by_country(topics: Topics):
    orders = topics.stream(
        "shop-orders",
        "order string not null, customer int not null, euro double not null, at timestamp not null",
        expect={"the amount is below zero": "euro >= 0"},
        maxOffsetsPerTrigger=20_000,
    ).withWatermark("at", "1 minute")
    customers = topics.table("shop-customers", "customer int, name string, country string")
    return (
        orders.join(F.broadcast(customers), "customer", "left")
        # By the window itself: by its start alone, Spark would keep every window for ever.
        .groupBy(F.window("at", "10 seconds"), "country")
        .agg(F.count("*").alias("orders"), F.round(F.sum("euro"), 2).alias("euro"))
        .withColumn("window", F.col("window.start"))
    )
