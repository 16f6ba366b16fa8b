drop view if exists
    recrawl.page_status, recrawl.host_status, recrawl.allocation_run, recrawl.job_run,
    recrawl_internal.visit_to_audit, recrawl_internal.page_to_allocate, recrawl_internal.host_to_allocate, recrawl_internal.page_evidence;
do $$
declare
    thing text;
begin
    -- Functions over the types and tables that go; those of the version before come back with its files.
    for thing in
        select p.oid::regprocedure
        from pg_proc p
        where p.pronamespace in ('recrawl_internal'::regnamespace, 'recrawl'::regnamespace)
          and exists (select from pg_depend d
                      where d.classid = 'pg_proc'::regclass and d.objid = p.oid
                        and d.refobjid in ('recrawl_internal.objective'::regtype, 'recrawl_internal.host_terms'::regtype,
                                           'recrawl_internal.allocation'::regtype, 'recrawl_internal.job'::regtype))
    loop
        execute 'drop function ' || thing;
    end loop;
end $$;
drop table recrawl_internal.host_terms, recrawl_internal.job, recrawl_internal.allocation, recrawl_internal.fetch_log;
drop sequence recrawl_internal.job_token;
alter table recrawl_internal.page drop column frequency, drop column seen_changes, drop column seen_days;
comment on column recrawl_internal.page.rate is 'Changes per day, where given; it is then also how often the page is fetched.';
alter table recrawl_internal.setting
    drop column budget, drop column objective, drop column exploration, drop column longest_interval, drop column shortest_interval,
    drop column keep_log;
comment on column recrawl_internal.setting.frequency is 'fetches per day: of a page that has no rate of its own.';
drop type recrawl_internal.objective;
update recrawl_internal.replayed set digest = '';
