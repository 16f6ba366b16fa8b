-- Four roles; each gets what it needs and nothing else. They belong to the whole server: made when missing, never dropped.

do $$
declare
    wanted text;
begin
    foreach wanted in array '{recrawl_crawler,recrawl_reader,recrawl_operator,recrawl_worker}'::text[] loop
        begin
            if not exists (select from pg_roles where rolname = wanted) then
                execute format('create role %I', wanted);
            end if;
            -- What operators and workers look at is what readers may look at.
            if wanted in ('recrawl_operator', 'recrawl_worker') and not pg_has_role(wanted, 'recrawl_reader', 'member') then
                execute format('grant recrawl_reader to %I', wanted);
            end if;
        exception
            when duplicate_object or unique_violation then null;          -- another database's migration was first
            when insufficient_privilege then
                raise exception using
                    message = format('the role %s is missing or no member of recrawl_reader, and %s may not change that', wanted, current_user),
                    hint = 'Let an administrator run: create role recrawl_crawler; create role recrawl_reader; create role recrawl_operator; '
                           'create role recrawl_worker; grant recrawl_reader to recrawl_operator, recrawl_worker;';
        end;
    end loop;
end $$;

-- From nothing: a right that is no longer granted below is gone after a replay.
revoke all on schema recrawl, recrawl_internal from public, recrawl_crawler, recrawl_reader, recrawl_operator, recrawl_worker;
revoke all on all functions in schema recrawl, recrawl_internal from public, recrawl_crawler, recrawl_reader, recrawl_operator, recrawl_worker;
revoke all on all tables in schema recrawl, recrawl_internal from public, recrawl_crawler, recrawl_reader, recrawl_operator, recrawl_worker;
grant usage on schema recrawl to recrawl_crawler, recrawl_reader, recrawl_operator, recrawl_worker;

grant execute on function
    recrawl.next_pages, recrawl.next_ready_at, recrawl.report, recrawl.report_pages, recrawl.release, recrawl.extend_lease, recrawl.add_pages,
    recrawl.hint_change
to recrawl_crawler;

grant select on
    recrawl.page_status, recrawl.host_status, recrawl.queue_status, recrawl.lease_status, recrawl.settings, recrawl.job_run, recrawl.allocation_run,
    recrawl.opic_run, recrawl.graph_node, recrawl.graph_link
to recrawl_reader;
-- What the views call: a view checks functions as its reader, who cannot reach their schema otherwise.
grant execute on function
    recrawl_internal.page_frequency, recrawl_internal.host_gap, recrawl_internal.sample_queue, recrawl_internal.takes_part,
    recrawl_internal.rate_interval, recrawl_internal.frequency_at, recrawl_internal.unpacked,
    recrawl.successors, recrawl.predecessors, recrawl.top_hubs, recrawl.top_authorities, recrawl.top_relevant, recrawl.sketch_distance
to recrawl_reader;

grant execute on function
    recrawl.add_pages, recrawl.fetch_now, recrawl.set_host, recrawl.block_host, recrawl.unblock_host, recrawl.pause, recrawl.resume,
    recrawl.exclude, recrawl.unexclude, recrawl.forget, recrawl.set_setting, recrawl.set_rate,
    recrawl.set_value, recrawl.set_relevance, recrawl.hint_change
to recrawl_operator;

grant usage on schema recrawl_internal to recrawl_worker;
grant execute on function
    recrawl_internal.tick(int, int), recrawl_internal.start_job, recrawl_internal.keep_job, recrawl_internal.end_job,
    recrawl_internal.put_prices, recrawl_internal.put_priors, recrawl_internal.put_frequencies,
    recrawl_internal.reopen_news, recrawl_internal.begin_graph_read, recrawl_internal.end_graph_read,
    recrawl_internal.put_graph_state, recrawl_internal.put_scores, recrawl_internal.put_opic
to recrawl_worker;
grant select on recrawl_internal.page_to_allocate, recrawl_internal.host_to_allocate, recrawl_internal.page_evidence,
    recrawl_internal.visit_to_audit, recrawl_internal.page_in_graph, recrawl_internal.link_in_graph, recrawl_internal.score_in_graph,
    recrawl_internal.news_in_graph, recrawl_internal.last_terms
to recrawl_worker;
