"""Tables that are asked and written with SQL: JdbcSource and JdbcSink, with the settings of Confluent's JDBC
connectors."""
