"""Compares the learned rates with the rates from the full fetch log. Only reads. The worker does not run it."""

import numpy as np

from recrawl.model.change.audit import Agreement, agreement
from recrawl.model.change.estimators import VisitLog
from recrawl.store import reads


def audit(url: str) -> list[Agreement]:
    log = reads.logged_visits(url)
    pages, starts = np.unique(log.page_id, return_index=True)  # the rows are in order of page_id
    visits = VisitLog(np.append(starts, len(log.page_id)), log.days.astype(np.float64), log.changed > 0)
    return agreement(visits, log.belief_changes[starts], log.belief_days[starts]) if len(pages) else []
