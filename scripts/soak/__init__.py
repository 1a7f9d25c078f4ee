"""Mixed runs of agents for minutes or hours, while all goes wrong that can: who gets what, and what is left over.

`command` reads the command line, `soak` makes rounds of `work` under `faults` that `plan` has chosen, `verdict` says
which ends of runs were right, `rest` looks for what is left, `memory` for what grows, `report` tells of it. The
scripted API runs in a process of its own: `api_process`, which `api` talks to, with the answers of `answers`.
"""
