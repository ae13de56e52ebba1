"""The controller: makes jobs what their users wish.

controller.py      reconciles wish and fact of each job
watched.py         what it knows of a job beside the database, and what is due
work.py            what it has to do, now and later
deadlines.py       when states end by themselves; restarts, back-off, outages
report_writer.py   what running jobs report, written down
removal.py         what nobody needs any more is removed
"""
