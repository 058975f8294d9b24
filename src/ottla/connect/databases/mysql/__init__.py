"""Changes of MySQL's and MariaDB's tables, by their binlog in row format."""
