-- Makes this worker the leader if nobody leads. Returns whether it leads. Several workers may run. The leader runs the
-- batch jobs, and asks this once a second. It stays the leader for alive_for, or until its session ends. The other
-- workers stand by until the leader gives no sign of life, because it is dead, frozen or on a machine that vanished. A
-- lock would stay with a frozen worker as long as its connection lives. A leader that was frozen learns here that
-- another worker leads now. A run of its jobs may go on until another run of the same job starts. Then it can write
-- nothing more (see job.sql).
create or replace function leads(worker uuid, alive_for interval) returns boolean
language plpgsql volatile security definer as $$
-- plans: lookups; writes leader; locks leader
declare
    t constant timestamptz := clock_timestamp();
begin
    -- The row is not written each second, because dead rows stay while an old snapshot is open.
    if exists (select from leader l
               where l.worker = leads.worker and l.pid = pg_backend_pid()
                 and l.alive_until between t + alive_for * 2 / 3 and t + alive_for) then
        return true;
    end if;
    update leader l set worker = leads.worker, alive_until = t + alive_for, pid = pg_backend_pid()
    where l.worker = leads.worker
       or (l.alive_until between t and t + alive_for) is not true
       or not exists (select from pg_stat_activity a where a.pid = l.pid);
    return found;
end $$;
grant execute on function leads to recrawl_worker;
