BEGIN; SELECT id FROM flights
-- refused 1:1: there is no BEGIN: checkpoints commit what comes out. Leave it out
