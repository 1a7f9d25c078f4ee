"""Mixed runs of agents for minutes or hours under random faults, with checks for mixed-up answers and leaks.

`command` reads the command line, `soak` makes rounds of `work` under `faults` on the `ground`, `verdict` judges the
results, `rest` finds leaks and errors without a caller, `report` prints the results. The scripted API runs in a
separate process: `api`, with content from `answers`.
"""
