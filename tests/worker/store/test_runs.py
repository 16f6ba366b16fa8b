"""The writes of a run of a job."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psycopg

from helpers import Crawl, codes, eventually, result_of
from recrawl import store


def test_a_run_that_waits_for_a_page_keeps_no_report_waiting(crawl: Crawl, url: str) -> None:
    """One transaction that hung and a run of opic stopped the reports of most pages."""
    crawl.add("http://a.test/", "http://b.test/")
    a, b = sorted(crawl.next(1) + crawl.next(1), key=lambda page: page["page_id"])
    ids, scores = np.array([a["page_id"], b["page_id"]]), np.ones(2, np.float32)
    with (
        ThreadPoolExecutor() as pool,
        psycopg.connect(url, options="-c search_path=recrawl,recrawl_internal") as hanging,
    ):
        hung = Crawl(hanging)
        hung.now = crawl.now
        hung.report(result_of(b))
        with store.runs.run(url, "opic") as run:
            run.put("put_graph_state", 0.5, 0.5)
            putting = pool.submit(run.put, "put_scores", ids, scores, scores, scores, scores)
            waiting = (
                "select exists (select from pg_stat_activity"
                " where datname = current_database() and wait_event_type = 'Lock')"
            )
            eventually(lambda: crawl.value(waiting), what="the run does not wait")
            crawl.connection.execute("set statement_timeout = '60 s'")
            assert codes(crawl.report(result_of(a))) == ["ok"]
            assert not putting.done()
            hanging.commit()
            putting.result(60)
    assert crawl.value("select count(*) from page_score") == 2
    assert crawl.value("select bool_and(ok) from job_run where job = 'opic'")
