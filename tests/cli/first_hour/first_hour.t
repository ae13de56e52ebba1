The first hour with arroyo-udf, on all flights from New York in 2013 and on 58,788 movies: what a newcomer types, also by
mistake, what is printed, and the exit status. `test_first_hour.py` runs it.

  $ python "$TESTDIR/data.py"

A first function, from the template, over its own rows.

  $ arroyo-udf new mine --lang python
  $ arroyo-udf new mine --lang python
  $ arroyo-udf build mine/mine.py
  $ arroyo-udf run mine/libmine.so mine/rows.csv --out mine/out.csv
  $ cat mine/out.csv
  $ arroyo-udf inspect mine/libmine.so
  $ cd mine && python -c "import mine; print(mine.mph(60, 30))" && cd ..

Over the flights.

  $ arroyo-udf run mine/libmine.so flights.csv --args distance,minutes --out speeds.parquet
  $ arroyo-udf run mine/libmine.so flights.csv --args distance --out speeds.parquet
  $ arroyo-udf run mine/libmine.so flight.csv --out speeds.parquet
  $ arroyo-udf run mine/libmine.so flights.csv --out speeds.xlsx
  $ arroyo-udf run mine/libmine.so flights.csv --out nowhere/speeds.csv
  $ arroyo-udf run mine/libmine.so flights.csv --out mine
  $ arroyo-udf run mine/libmine.so flights.csv --out flights.csv
  $ arroyo-udf run mine/libmine.so flights.csv --out speeds.parquet
  $ python -c "import pyarrow.parquet as pq; t = pq.read_table('speeds.parquet'); print(t.num_rows, t.column_names[-1], t['mph'].null_count, t.schema.field('time_hour').type)"
  $ arroyo-udf run mine/libmine.so speeds.parquet --out again.csv
  $ arroyo-udf run mine/libmine.so speeds.parquet --name speed --select flight,speed --limit 3 --out -
  $ head -3 flights.csv | arroyo-udf run mine/libmine.so - --select flight,mph --out -
  $ gzip --keep flights.csv && arroyo-udf run mine/libmine.so flights.csv.gz --out speeds.csv.zst
  $ arroyo-udf run mine/mine.py mine/rows.csv --select flight,mph --out -

Functions on movies. The first version has mistakes.

  $ cat > movies.py <<'EOF'
  > from arroyo_udf_plugin import udf
  > @udf
  > def decade(year):
  >     return year // 10 * 10
  > EOF
  $ arroyo-udf build movies.py
  $ cat > movies.py <<'EOF'
  > from arroyo_udf_plugin import udf
  > @udf
  > def decade(year: int, step: int = 10) -> int:
  >     return year // step * step
  > EOF
  $ arroyo-udf build movies.py
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
  $ cat > movies.py <<'EOF'
  > from arroyo_udf_plugin import udf
  > @udf(timeout=5)
  > def decade(year: int) -> int:
  >     return year // 10 * 10
  > EOF
  $ arroyo-udf build movies.py
  $ arroyo-udf build movie.py
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
  $ python -c "import movies"
  $ arroyo-udf inspect libmovies.so
  $ arroyo-udf run libmovies.so movies.csv --out decades.parquet
  $ arroyo-udf run libmovies.so:decades movies.csv --out decades.parquet
  $ arroyo-udf run libmovies.so:decade movies.csv --out decades.parquet
  $ python -c "import pyarrow.compute as pc, pyarrow.parquet as pq; t = pq.read_table('decades.parquet'); print(pc.value_counts(t['decade']).to_pylist()[:2], t['title'].type, t['title'][6].as_py())"
  $ arroyo-udf run libmovies.so:number movies.csv --select title,number --out numbers.csv
  $ grep -c ',[0-9]' numbers.csv

Rows that fail.

  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv
  $ ls cents.csv
  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv --on-error ignore
  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv --on-error null
  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv --on-error drop
  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv --on-error dead_letter
  $ arroyo-udf run libmovies.so:cents_per_vote movies.csv --out cents.csv --on-error dead_letter --dead-letter failed.parquet
  $ sed -i 's/votes < 10/votes < 1/' movies.py && arroyo-udf build movies.py
  $ arroyo-udf replay failed.parquet --into decades.parquet
  $ arroyo-udf replay failed.parquet --into cents.csv
  $ wc -l < cents.csv
  $ arroyo-udf run libmovies.so:decade movies.csv --args votes --out - --limit 2 --select title,decade
  $ arroyo-udf run libmovies.so:decade movies.csv --args title --out titles.csv
  $ arroyo-udf run libmovies.so:decade movies.csv --args title --out titles.csv --on-error null

Files that are not what their names say.

  $ cp movies.csv movies.parquet && arroyo-udf run libmovies.so:decade movies.parquet --out o.csv
  $ head -c 100000 decades.parquet > cut.parquet && arroyo-udf run libmovies.so:decade cut.parquet --out o.csv
  $ arroyo-udf run movies.py:decade movies.csv --out /dev/full --out-format csv
  $ arroyo-udf run movies.csv movies.csv --out o.csv
  $ printf 'zip,year\n01234,1999\n' > zips.csv && arroyo-udf run libmovies.so:decade zips.csv --out zips.arrow
  $ python -c "import pyarrow as pa; print(pa.ipc.open_file('zips.arrow').read_all().to_pylist())"
  $ printf '{"year": 1999}\n{"year": "soon"}\n' > years.jsonl && arroyo-udf run libmovies.so:decade years.jsonl --out -
  $ arroyo-udf run libmovies.so:decade years.jsonl --out - --on-error null

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
  $ head -40 movies.csv > few.csv
  $ arroyo-udf run libslow.so few.csv --out waited.csv --option timeout=soon
  $ arroyo-udf run libslow.so few.csv --out waited.csv --option time_out=1
  $ arroyo-udf run libslow.so few.csv --out waited.csv --option timeout=2s
  $ arroyo-udf run libslow.so few.csv --out waited.csv --option timeout=2s --on-timeout drop --json | python -c "import json, sys; s = json.load(sys.stdin); print(s['rows'], s['values'], s['timed_out'], s['dropped'])"
  $ timeout --preserve-status --signal INT 2 arroyo-udf run libslow.so few.csv --out stopped.csv --option timeout=inf
  $ ls -A | grep -c stopped

The same in Rust and in C.

  $ arroyo-udf new inrust --lang rust
  $ arroyo-udf new inc --lang c && arroyo-udf build inc/inc.c && arroyo-udf run inc/libinc.so inc/rows.csv --out - --select flight,mph
  $ arroyo-udf cache

