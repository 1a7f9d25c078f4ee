"""Requests that another model finished.

The CLI notes such a request's usage under the model that answered, or under the requested model, by version and
settings. The rows have the model that answered, so totals are changed to it.
"""

from collections.abc import Iterable, Mapping

from ..log_files.model_names import canonical_model
from ..log_files.rows import DECLINED, Ledger, Row, counts_of, subtract_counts
from .sums import FEW_STEPS, NOTHING, Totals, add_to, difference, find_addends, sums, sums_of


def requested_models(rows: Mapping[str, Row]) -> dict[str, str]:
    """Return the requested models by key, for requests that another model finished."""
    declined = [(row.key.partition(DECLINED)[0], row.model) for row in rows.values() if row.kind == "declined"]
    return {key: canonical_model(model) for key, model in reversed(declined)}


def with_answering_models(ledger: Ledger, rows: Iterable[Row], requested: Mapping[str, str]) -> Ledger:
    """Return a total with requests counted under the models that answered, not under the requested models."""
    requests = list(rows)
    totals: Totals = dict(ledger.totals)
    for row in requests:
        old, new = requested.get(row.key), canonical_model(row.model)
        counts, cost = totals.get(old or "", NOTHING)
        same = [other for other in requests if canonical_model(other.model) == new]
        under_new = sums({new: totals.get(new, NOTHING)})
        if old is None or difference(under_new, sums_of(same)) is not None:
            continue
        # Without this request, as if a killed process made it.
        under_old = [other for other in requests if canonical_model(other.model) == old]
        if find_addends(under_old, sums({old: (counts, cost)}), FEW_STEPS) is not None:
            continue
        part = counts_of(row)
        if difference(sums({new: (counts, cost)}), sums_of([row])) is None:
            continue
        share = cost * row.tokens / max(1, sum(counts[:5]))
        totals[old] = (subtract_counts(counts, part), cost - share)
        add_to(totals, new, part, share)
    return ledger._replace(totals={model: total for model, total in totals.items() if any(total[0]) or total[1] > 0})
