SET parallel = 3; SELECT id FROM flights
-- refused 1:5: there is no setting parallel: there are on_error, on_timeout, on_late, dead_letters, isolation, workers, memory_limit, disk_limit, allowed_lateness, max_drift, state_ttl, updating_ttl, checkpoint_interval, checkpoint_rows, retained_checkpoints
