"""The functions of a library in other engines: one line in Python for each of them.

    integrations.duckdb.register(connection, "libudf.so")       SELECT mph(distance, air_time) FROM flights
    integrations.polars.functions("libudf.so").mph("distance", "air_time")         an expression
    integrations.daft.register("libudf.so")                     daft.sql("SELECT mph(distance, air_time) FROM flights")
    integrations.sqlite.register(connection, "libudf.so")       SELECT mph(distance, air_time) FROM flights
    integrations.datafusion.register(context, "libudf.so")      SELECT mph(distance, air_time) FROM flights
    integrations.pandas.functions("libudf.so").mph(frame.distance, frame.air_time)
    integrations.spark.register(session, "libudf.so")           SELECT mph(distance, air_time) FROM flights

duckdb.py, polars.py, daft.py, sqlite.py   the engine loads the library itself (see build/engines.py): for functions in
                                           C and Rust no Python is called
datafusion.py, pandas.py, spark.py         the host calls, with Arrow arrays
spark_types.py                             Spark's types for those of a function
opened.py                                  the library of a path; batches, failed rows and volatility for the host

A source (.py, .rs, .c) may stand for its library, which is built if it has changed. Each module imports its engine, and
is imported when it is asked for.
"""
