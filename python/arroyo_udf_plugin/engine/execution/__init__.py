"""The engine: a pipeline in one process, without any server.

    sources ──► slice 0: operators ──► exchange ──► windows ──► sinks         each slice in a thread of its own
            ──► slice 1: operators ──► exchange ──► windows ──► sinks
                   │ sealed, snapshot
    runner ────────┴──► checkpoints ──► store        one coordinator: starts, checkpoints, stops, tells

embedded.py     a pipeline from its description to its end
planned.py      what the engine is given
runner.py       the coordinator
slice.py        a copy of the chain, over a share of the source
reading.py      one source in a slice
shares.py       which slice reads which partitions
idleness.py     whether the source is idle; drift.py: whether it is too far ahead of others
opening.py      its slices and sinks, brought to the latest epoch
checkpoints.py  epochs: what is committed, and how
epoch_files.py  the files of epochs: which are there, and which are retained
retention.py    which of them are kept; savepoints.py: those with a name
restoring.py    back to an older checkpoint
snapshot.py     what a slice gives an epoch; checkpoint_statistics.py: what an epoch took
exchange.py     rows on their way to the slice that has their key
sealed_epoch.py an epoch on its way into the store; staged_state.py: the state of an operator
manifest.py     the file of an epoch
changes.py      what may change before a resume
dependents.py   what windows keep of a query's column
store.py        where checkpoints are kept
progress.py     numbers for the view and the summary; counters.py: what a slice counts
ticker.py       when something is done again
stopping.py     requests to stop; deadlines

Guarantees: memory is bounded, because a slice reads only while its first operator wants input, and takes from an
operator only while the next one does. Nothing polls: a slice without rows uses no CPU. With checkpoints each row has
its effect in the sinks once, whatever is killed when (checkpoints.py). Without, outputs appear at the end, or not.
"""

from __future__ import annotations
