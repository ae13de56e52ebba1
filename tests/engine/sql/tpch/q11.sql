-- value_of(cost, many) = cost * many
SELECT ps_partkey, sum(value_of(ps_supplycost, ps_availqty)) AS value
FROM partsupp, supplier, nation
WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
GROUP BY ps_partkey
HAVING sum(value_of(ps_supplycost, ps_availqty)) > (
    SELECT sum(value_of(ps_supplycost, ps_availqty)) * 0.001
    FROM partsupp, supplier, nation
    WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'GERMANY'
)
ORDER BY value DESC, ps_partkey
