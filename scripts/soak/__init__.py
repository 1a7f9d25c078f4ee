"""Mixed runs of agents for minutes or hours under random faults, with checks for mixed-up answers and leaks.

`command` reads the command line, `soak` makes rounds of `work` under `faults` selected by `plan`, `verdict` judges the
results, `rest` finds leaks, `memory` measures growth, `report` prints the results. The scripted API runs in a process
of its own: `api_process`, with `api` as its client and `answers` as its content.
"""
