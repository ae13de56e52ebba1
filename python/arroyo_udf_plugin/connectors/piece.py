"""What every reader of a file yields."""

import pyarrow as pa

# The number of the first row; the rows; those that could not be read, by position: why.
Piece = tuple[int, pa.RecordBatch, dict[int, str]]
