SELECT maker FROM planes;
-- refused 1:19: planes is TEMPORARY, for lookups: write FROM another table JOIN planes ON its key
