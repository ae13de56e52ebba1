"""docs/cluster.md tells what is: its tables are generated."""

from cluster_docs import DOCUMENT, written


def test_the_generated_tables_are_those_of_the_code() -> None:
    text = DOCUMENT.read_text()
    assert written(text) == text, "run scripts/cluster_docs.py"
    assert "| Running | stop checkpoint | CheckpointStopping |" in text
    assert "| `api.http_port` | 5115 | 0: a free one. |" in text
