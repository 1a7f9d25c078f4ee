"""Requests that another model answered than the requested one, or the same model under another name.

If another model finished a request, the CLI notes the usage under the model that answered, or under the requested
model, by version and settings. The rows have the model that answered, so totals are changed to it. Behind a gateway,
the CLI notes it under the requested model, whatever name the answer has; such rows have both names.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from ..log_files.amounts import NOTHING, Amounts
from ..log_files.model_names import canonical_model
from ..log_files.rows import DECLINED, FileScan, Ledger, Row
from .sums import FEW_STEPS, Sums, Totals, add_to, billed_model, difference, find_addends, sums, sums_of

_ANY_MODEL = ""


def bill_requests(scans: Iterable[FileScan], rows: dict[str, Row]) -> None:
    """Complete `requested` in rows whose model is in none of their session totals, where sums or names tell it.

    Only transcripts of newer versions have the requested model.
    """
    stated: dict[str, Totals] = defaultdict(dict)
    for scan in scans:
        for ledger in scan.ledgers:
            session = stated[ledger.session]
            for model, amounts in ledger.totals.items():
                if ledger.kind == "delta":
                    add_to(session, model, amounts)
                elif sum(amounts.counts) >= sum(session.get(model, NOTHING).counts):
                    session[model] = amounts
    names = {(row.session, row.model, row.requested) for row in rows.values()}
    session_ids = {
        session
        for session, model, requested in names
        if session in stated and canonical_model(requested or model) not in stated[session]
    }
    # Rows by the model in the totals, by session.
    grouped: dict[str, dict[str, list[Row]]] = {session: defaultdict(list) for session in session_ids}
    for row in rows.values() if session_ids else ():
        if row.session in session_ids and row.kind in ("request", "advice"):
            grouped[row.session][billed_model(row)].append(row)
    for session, groups in grouped.items():
        rows |= {row.key: row for row in _billed(groups, stated[session])}


def _billed(groups: Mapping[str, list[Row]], totals: Totals) -> Iterator[Row]:
    left = {model: _inputs(totals[model], groups.get(model, ())) for model in totals}
    for model in groups.keys() - totals.keys():
        group = [row for row in groups[model] if row.kind == "request"]
        spent = sums_of(map(_without_output, group))
        possible = [name for name, rest in left.items() if rest == spent]
        possible = possible or [name for name in totals if name not in groups] or [*totals]
        # An older CLI counts under the answering model, although it noted the requested one.
        answered = canonical_model(group[0].model) if group else model
        if answered in totals or len(possible) == 1:
            name = "" if answered in totals else possible[0]
            yield from (row._replace(requested=name) for row in group)


def _inputs(total: Amounts, requests: Iterable[Row]) -> Sums | None:
    """Return what requests leave of a model's total, without the output, which streams state late."""
    return difference(sums({_ANY_MODEL: total._replace(output=0)}), sums_of(map(_without_output, requests)))


def _without_output(row: Row) -> Row:
    return row._replace(model=_ANY_MODEL, requested="", output=0)


def requested_models(rows: Mapping[str, Row]) -> dict[str, str]:
    """Return the requested models by key, for requests that another model finished."""
    declined = [(row.key.partition(DECLINED)[0], row.model) for row in rows.values() if row.kind == "declined"]
    return {key: canonical_model(model) for key, model in reversed(declined)}


def with_answering_models(ledger: Ledger, rows: Iterable[Row], requested: Mapping[str, str]) -> Ledger:
    """Return a total with requests counted under the models that answered, not under the requested models."""
    requests = list(rows)
    totals: Totals = dict(ledger.totals)
    for row in requests:
        old_model, new_model = requested.get(row.key), canonical_model(row.model)
        amounts = totals.get(old_model or "", NOTHING)
        same_model = [request for request in requests if canonical_model(request.model) == new_model]
        under_new = sums({new_model: totals.get(new_model, NOTHING)})
        if old_model is None or difference(under_new, sums_of(same_model)) is not None:
            continue
        # Without this request, as if a killed process made it.
        under_old = [request for request in requests if canonical_model(request.model) == old_model]
        if find_addends(under_old, sums({old_model: amounts}), FEW_STEPS) is not None:
            continue
        if difference(sums({new_model: amounts}), sums_of([row])) is None:
            continue
        part = row.amounts._replace(cost=amounts.cost * row.tokens / max(1, amounts.tokens))
        totals[old_model] = (amounts - part).at_least_zero
        add_to(totals, new_model, part)
    return ledger._replace(totals={model: total for model, total in totals.items() if any(total)})
