"""Mixed runs of agents for minutes or hours under random faults, with checks for mixed-up answers and leaks.

`soak` makes rounds of `work` under `faults`, `verdict` judges the results, `rest` finds leaks and errors without a
caller, `report` has the figures. The scripted API runs in a separate process: `api`.
"""
