SELECT explode(tags) AS t FROM flights
-- refused 1:8: there is no function explode: write unnest(list)
