-- What each country buys in ten seconds, as a SQL file: `ottla pipeline run examples/sales_by_country.sql`.
-- name: sales-by-country-sql
-- to: sales-by-country-sql
-- key: window, country
-- mode: update
-- every: 1 second
-- stream: shop-orders as orders (order string not null, customer int not null, euro double, at timestamp not null)
-- expect: orders euro >= 0 else the amount is below zero
-- watermark: orders at 1 minute
-- table: shop-customers as customers (customer int, name string, country string)
select window(at, '10 seconds').start as window, country, count(*) as orders, round(sum(euro), 2) as euro
from orders left join customers using (customer)
group by window(at, '10 seconds'), country
