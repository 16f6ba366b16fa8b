-- pause and resume: the whole crawl, off and on. Reports are still taken in while it is paused.

create or replace function recrawl.pause() returns void
language plpgsql volatile security definer as $$
begin
    update setting set paused = true where not paused;
    if found then
        perform note_event(clock_timestamp(), 'crawl', 'paused', 'the crawl was paused');
    end if;
end $$;
comment on function recrawl.pause is
    'Pauses the crawl: next_pages hands out no page until you call resume(). Reports still count.';

create or replace function recrawl.resume() returns void
language plpgsql volatile security definer as $$
begin
    update setting set paused = false where paused;
    if found then
        perform note_event(clock_timestamp(), 'crawl', 'paused', 'the crawl was resumed');
    end if;
end $$;
comment on function recrawl.resume is 'Ends the pause: next_pages hands out pages again.';
grant execute on function recrawl.pause, recrawl.resume to recrawl_operator;
