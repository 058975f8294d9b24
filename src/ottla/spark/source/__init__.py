"""The Spark data source `ottla`: plans on the driver, reads and decodes on the executors."""
