CREATE TABLE customers (id INT PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
INSERT INTO customers VALUES (1, 'Anna', 'DE'), (2, 'Ben', 'FR');
