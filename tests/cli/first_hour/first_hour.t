The first hour with arroyo-udf, on all flights from New York in 2013 and on 58,788 movies: what a newcomer types, also by
mistake, what is printed, and the exit status. `test_first_hour.py` runs it.

  $ python "$TESTDIR/data.py"

A first function, from the template, over its own rows.

  $ arroyo-udf new mine --lang python
  mine/mine.py is yours to edit; mine/README.md says how to build and run it
  $ arroyo-udf new mine --lang python
  Error: mine exists already: choose another name, or remove it first
  [1]
  $ arroyo-udf build mine/mine.py
  mph  native
  */mine/libmine.so (glob)
  $ arroyo-udf run mine/libmine.so mine/rows.csv --limit 3
  flight  distance  air_time                 mph
  1545        1400       227  370.04405286343615
  1714        1416       227    374.273127753304
  1141        null       160                null
  the first 3 rows; 3 values (1 null), 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  nothing was written; to write all rows, add --out FILE
  $ arroyo-udf run mine/libmine.so mine/rows.csv --call 'speed = mph(distance, 60)' --select flight,speed --limit 1
  flight   speed
  1545    1400.0
  the first row; 1 value, 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  nothing was written; to write all rows, add --out FILE
  $ arroyo-udf run mine/libmine.so mine/rows.csv --out mine/out.csv
  mine/out.csv: 5 rows written of 5 read; 5 values (1 null), 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  $ cat mine/out.csv
  flight,distance,air_time,mph
  1545,1400,227,370.04405286343615
  1714,1416,227,374.273127753304
  1141,NA,160,
  725,1576,183,516.7213114754098
  461,762,116,394.13793103448273
  $ arroyo-udf inspect mine/libmine.so
  name             mine
  language         python
  source           */mine/mine.py (glob)
  abi_version      1
  toolkit_version  0.1.0
  hash             * (glob)
  engines          Arroyo, DuckDB, Polars, Daft, SQLite
  
  mph(distance: int64, air_time: int64) -> double
      sync, native
      Miles and minutes to miles per hour. If an argument is null, so is the result; the function is not called.
  $ cd mine && python -c "import mine; print(mine.mph(60, 30))" && cd ..
  120.0

Over the flights.

  $ arroyo-udf run mine/libmine.so flights.csv --args distance,minutes --out speeds.parquet
  Error: flights.csv: there is no column 'minutes'; the columns are year, month, day, dep_time, sched_dep_time, dep_delay, arr_time, sched_arr_time, arr_delay, carrier, flight, tailnum, origin, dest, air_time, distance, hour, minute, time_hour
  [1]
  $ arroyo-udf run mine/libmine.so flights.csv --args distance --out speeds.parquet
  Error: mph takes 2 arguments (distance: int64, air_time: int64), but the columns named are: distance
  [1]
  $ arroyo-udf run mine/libmine.so flight.csv --out speeds.parquet
  Error: flight.csv: there is no such file
  [1]
  $ arroyo-udf run mine/libmine.so flights.csv --out speeds.xlsx
  Error: speeds.xlsx: the file's ending must be one of .csv, .tsv, .jsonl, .ndjson, .parquet, .arrow, .feather, .arrows, or --out-format must name the format
  [1]
  $ arroyo-udf run mine/libmine.so flights.csv --out nowhere/speeds.csv
  Error: nowhere/speeds.csv: the folder nowhere does not exist
  [1]
  $ arroyo-udf run mine/libmine.so flights.csv --out mine
  Error: mine is a folder; name a file in it
  [1]
  $ arroyo-udf run mine/libmine.so flights.csv --out flights.csv
  Error: flights.csv is an input, too: name another output, or replace it with --force
  [1]
  $ arroyo-udf run mine/libmine.so flights.csv --out speeds.parquet
  speeds.parquet: 336,776 rows written of 336,776 read; 336,776 values (9,430 null), 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  $ python -c "import pyarrow.parquet as pq; t = pq.read_table('speeds.parquet'); print(t.num_rows, t.column_names[-1], t['mph'].null_count, t.schema.field('time_hour').type)"
  336776 mph 9430 string
  $ arroyo-udf run mine/libmine.so speeds.parquet --out again.csv
  Error: there is a column 'mph' already: choose the result's name with --name, or --call 'NAME = mph(...)'
  [1]
  $ arroyo-udf run mine/libmine.so speeds.parquet --name speed --select flight,speed --limit 3 --out -
  flight,speed
  1545,370.04405286343615
  1714,374.273127753304
  1141,408.375
  -: 3 rows written of 3 read; 3 values, 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  $ head -3 flights.csv | arroyo-udf run mine/libmine.so - --select flight,mph --out -
  flight,mph
  1545,370.04405286343615
  1714,374.273127753304
  -: 2 rows written of 2 read; 2 values, 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  $ gzip --keep flights.csv && arroyo-udf run mine/libmine.so flights.csv.gz --out speeds.csv.zst
  speeds.csv.zst: 336,776 rows written of 336,776 read; 336,776 values (9,430 null), 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  $ arroyo-udf run mine/mine.py mine/rows.csv --select flight,mph --out -
  flight,mph
  1545,370.04405286343615
  1714,374.273127753304
  1141,
  725,516.7213114754098
  461,394.13793103448273
  -: 5 rows written of 5 read; 5 values (1 null), 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)

Functions on movies. The first version has mistakes.

  $ cat > movies.py <<'EOF'
  > from arroyo_udf_plugin import udf
  > @udf
  > def decade(year):
  >     return year // 10 * 10
  > EOF
  $ arroyo-udf build movies.py
  Error: */movies.py:2: function 'decade' does not say the type of argument 'year'; annotate it, as `year: int` (glob)
  [1]
  $ cat > movies.py <<'EOF'
  > from arroyo_udf_plugin import udf
  > @udf
  > def decade(year: int, step: int = 10) -> int:
  >     return year // step * step
  > EOF
  $ arroyo-udf build movies.py
  Error: */movies.py:2: function 'decade' has a default value for 'step', and every call passes all columns; leave it out, or use `T | None` and look for None (glob)
  [1]
  $ cat > movies.py <<'EOF'
  > from arroyo_udf_plugin import udf
  > @udf
  > def decade(year: int) -> int:
  >     return year // 10 * 10
  > @udf
  > def decade(title: str) -> int:
  >     return 0
  > EOF
  $ arroyo-udf build movies.py
  Error: */movies.py:5: function 'decade' has the name of the function in line 2; rename one (glob)
  [1]
  $ cat > movies.py <<'EOF'
  > from arroyo_udf_plugin import udf
  > @udf(max_attempts=5)
  > def decade(year: int) -> int:
  >     return year // 10 * 10
  > EOF
  $ arroyo-udf build movies.py
  Error: */movies.py:2: function 'decade' is sync, and 'max_attempts' is for async functions; write `async def` or blocking=True, or leave it out (glob)
  [1]
  $ arroyo-udf build movie.py
  Error: */movie.py: there is no such file (glob)
  [1]
  $ cat > movies.py <<'EOF'
  > """What a film lover computes."""
  > from arroyo_udf_plugin import udf
  > 
  > @udf
  > def decade(year: int) -> int:
  >     """The first year of its decade."""
  >     return year // 10 * 10
  > 
  > @udf
  > def cents_per_vote(budget: int, votes: int) -> int:
  >     """What the film has cost for each vote."""
  >     if votes < 10:
  >         raise ValueError(f"only {votes} votes")
  >     return budget * 100 // votes
  > 
  > @udf
  > def number(title: str) -> int | None:
  >     """The number that is the title, if it is one."""
  >     return int(title) if title.isdecimal() else None
  > EOF
  $ arroyo-udf build movies.py
  decade          native
  cents_per_vote  native
  number          native
  */libmovies.so (glob)
  $ python -c "import movies"
  $ arroyo-udf inspect libmovies.so
  name             movies
  language         python
  source           */movies.py (glob)
  abi_version      1
  toolkit_version  0.1.0
  hash             * (glob)
  engines          DuckDB, Polars, Daft, SQLite
  
  decade(year: int64) -> int64
      sync, native
      The first year of its decade.
  
  cents_per_vote(budget: int64, votes: int64) -> int64
      sync, native
      What the film has cost for each vote.
  
  number(title: string) -> int64 or null
      sync, native
      The number that is the title, if it is one.
  $ arroyo-udf run libmovies.so movies.csv --out decades.parquet
  Error: libmovies.so has several functions (decade, cents_per_vote, number): name one as libmovies.so:decade, or several with --call
  [1]
  $ arroyo-udf run libmovies.so:decades movies.csv --out decades.parquet
  Error: libmovies.so has no function 'decades'; it has decade, cents_per_vote, number
  [1]
  $ arroyo-udf run libmovies.so:decade movies.csv --out decades.parquet
  decades.parquet: 58,788 rows written of 58,788 read; 58,788 values, 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  $ python -c "import pyarrow.compute as pc, pyarrow.parquet as pq; t = pq.read_table('decades.parquet'); print(pc.value_counts(t['decade']).to_pylist()[:2], t['title'].type, t['title'][6].as_py())"
  [{'values': 1970, 'counts': 6270}, {'values': 1930, 'counts': 4328}] string $windle
  $ arroyo-udf run libmovies.so:number movies.csv --select title,number --out numbers.csv
  numbers.csv: 58,788 rows written of 58,788 read; 58,788 values (58,745 null), 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  $ grep -c ',[0-9]' numbers.csv
  62

Rows that fail.

  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv
  Error: movies.cents_per_vote, movies.csv, row 143: ValueError: only 7 votes
    at cents_per_vote, <movies.py *>:13: raise ValueError(f"only {votes} votes") (glob)
  [1]
  $ ls cents.csv
  ls: cannot access 'cents.csv': No such file or directory
  [2]
  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv --on-error ignore
  Usage: arroyo-udf run [OPTIONS] PLUGIN[:FUNCTION] INPUT...
  Try 'arroyo-udf run --help' for help.
  
  Error: Invalid value for '--on-error': 'ignore' is not one of 'fail', 'null', 'drop', 'dead_letter'.
  [2]
  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv --on-error null
  cents.csv: 58,788 rows written of 58,788 read; 58,391 values (53,573 null), 397 errors, 0 timed out; 397 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  397 rows failed in cents_per_vote, such as movies.csv, row 143: ValueError: only 7 votes
  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv --on-error drop
  cents.csv: 58,391 rows written of 58,788 read; 58,391 values (53,573 null), 397 errors, 0 timed out; 0 nulled, 397 dropped, 0 dead letters; * s, * rows/s (glob)
  397 rows failed in cents_per_vote, such as movies.csv, row 143: ValueError: only 7 votes
  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv --on-error dead_letter
  Error: the policy dead_letter needs a file: name one with --dead-letter
  [1]
  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv --on-error dead_letter --dead-letter failed.parquet
  cents.csv: 58,391 rows written of 58,788 read; 58,391 values (53,573 null), 397 errors, 0 timed out; 0 nulled, 0 dropped, 397 dead letters; * s, * rows/s (glob)
  397 rows failed in cents_per_vote, such as movies.csv, row 143: ValueError: only 7 votes
  $ sed -i 's/votes < 10/votes < 1/' movies.py && arroyo-udf build movies.py
  decade          native
  cents_per_vote  native
  number          native
  */libmovies.so (glob)
  $ arroyo-udf replay failed.parquet --into decades.parquet
  Error: decades.parquet.rows is missing: a run with dead letters writes it beside its output, if its input has none, and only such an output can take in rows. Make the dead letters the input of a run with an output of its own instead
  [1]
  $ arroyo-udf replay failed.parquet --into cents.csv
  cents.csv: 397 rows added of 397 dead letters; 397 values, 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  $ wc -l < cents.csv
  58789
  $ arroyo-udf run libmovies.so:decade movies.csv --args votes --out - --limit 2 --select title,decade
  title,decade
  $,340
  $1000 a Touchdown,20
  -: 2 rows written of 2 read; 2 values, 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  $ arroyo-udf run libmovies.so:decade movies.csv --args title --out titles.csv
  Error: movies.decade, movies.csv, row 1: column 'title': '$' is not int64
  [1]
  $ arroyo-udf run libmovies.so:decade movies.csv --args title --out titles.csv --on-error null
  titles.csv: 58,788 rows written of 58,788 read; 43 values, 58,745 errors, 0 timed out; 58,745 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  58,745 rows failed in decade, such as movies.csv, row 1: column 'title': '$' is not int64

Files that are not what their names say.

  $ cp movies.csv movies.parquet && arroyo-udf run libmovies.so:decade movies.parquet --out o.csv
  Error: cannot read movies.parquet: Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file. Is it cut off, or not parquet? (--in-format names another format)
  [1]
  $ head -c 100000 decades.parquet > cut.parquet && arroyo-udf run libmovies.so:decade cut.parquet --out o.csv
  Error: cannot read cut.parquet: Parquet magic bytes not found in footer. Either the file is corrupted or this is not a parquet file. Is it cut off, or not parquet? (--in-format names another format)
  [1]
  $ arroyo-udf run movies.py:decade movies.csv --out /dev/full --out-format csv
  Error: cannot write /dev/full: No space left on device
  [1]
  $ arroyo-udf run movies.csv movies.csv --out o.csv
  Error: */movies.csv: cannot be opened as a shared library: invalid ELF header (glob)
  [1]
  $ printf 'zip,year\n01234,1999\n' > zips.csv && arroyo-udf run libmovies.so:decade zips.csv --out zips.arrow
  zips.arrow: 1 row written of 1 read; 1 value, 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  $ python -c "import pyarrow as pa; print(pa.ipc.open_file('zips.arrow').read_all().to_pylist())"
  [{'zip': '01234', 'year': 1999, 'decade': 1990}]
  $ printf '{"year": 1999}\n{"year": "soon"}\n' > years.jsonl && arroyo-udf run libmovies.so:decade years.jsonl --out -
  year,decade
  1999,1990
  Error: movies.decade, years.jsonl, row 2: column 'year': 'soon' is not int64
  [1]
  $ arroyo-udf run libmovies.so:decade years.jsonl --out - --on-error null
  year,decade
  1999,1990
  soon,
  -: 2 rows written of 2 read; 1 value, 1 error, 0 timed out; 1 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  1 row failed in decade, such as years.jsonl, row 2: column 'year': 'soon' is not int64

Waiting: an async function.

  $ cat > slow.py <<'EOF'
  > import asyncio
  > from arroyo_udf_plugin import udf
  > @udf(allowed_in_flight=1000, timeout="5s")
  > async def wait(votes: int) -> int:
  >     await asyncio.sleep(3600 if votes == 6 else 0.001)
  >     return votes
  > EOF
  $ arroyo-udf build slow.py
  */libslow.so (glob)
  $ head -40 movies.csv > few.csv
  $ arroyo-udf run libslow.so few.csv --out waited.csv --option timeout=soon
  Usage: arroyo-udf run [OPTIONS] PLUGIN[:FUNCTION] INPUT...
  Try 'arroyo-udf run --help' for help.
  
  Error: --option has timeout='soon'; write seconds above 0 and up to 1e9, a text such as '10ms', or math.inf
  [2]
  $ arroyo-udf run libslow.so few.csv --out waited.csv --option time_out=1
  Usage: arroyo-udf run [OPTIONS] PLUGIN[:FUNCTION] INPUT...
  Try 'arroyo-udf run --help' for help.
  
  Error: --option has the unknown option 'time_out'; there are ordered, allowed_in_flight, timeout, deadline, rate, max_rows, max_bytes, max_attempts, retry_on, backoff, max_backoff, seed, idempotent, max_stuck, batch_size, max_wait, batch_bytes, deterministic, cache, cache_bytes, cache_ttl, cache_errors
  [2]
  $ arroyo-udf run libslow.so few.csv --out waited.csv --option timeout=2s
  Error: slow.wait, few.csv, row 4: timed out (timeout 2 s) in attempt 1
  [1]
  $ arroyo-udf run libslow.so few.csv --out waited.csv --option timeout=2s --on-timeout drop --json | python -c "import json, sys; s = json.load(sys.stdin); print(s['rows'], s['values'], s['timed_out'], s['dropped'])"
  39 37 2 2
  $ timeout --preserve-status --signal INT 2 arroyo-udf run libslow.so few.csv --out stopped.csv --option timeout=inf
  arroyo-udf: stopped by SIGINT
  [130]
  $ ls -A | grep -c stopped
  0
  [1]

The same in Rust and in C.

  $ arroyo-udf new inrust --lang rust
  inrust/inrust.rs is yours to edit; inrust/README.md says how to build and run it
  $ arroyo-udf new inc --lang c && arroyo-udf build inc/inc.c && arroyo-udf run inc/libinc.so inc/rows.csv --out - --select flight,mph
  inc/inc.c is yours to edit; inc/README.md says how to build and run it
  */inc/libinc.so (glob)
  flight,mph
  1545,370.04405286343615
  1714,374.273127753304
  1141,
  725,516.7213114754098
  461,394.13793103448273
  -: 5 rows written of 5 read; 5 values (1 null), 0 errors, 0 timed out; 0 nulled, 0 dropped, 0 dead letters; * s, * rows/s (glob)
  $ arroyo-udf cache --limit 10GB > /dev/null

