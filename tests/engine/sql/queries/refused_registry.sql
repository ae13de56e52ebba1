CREATE TABLE k (a INT) WITH (connector = 'stdin', format = 'json', 'json.confluent_schema_registry' = 'true');
SELECT a FROM k
-- refused 1:68: json.confluent_schema_registry: there is no schema registry here. Leave it out
