-- Rows that the functions of this folder pass to each other. They hold no state: `recrawl migrate` drops a type that
-- changed, with the functions that use it, and makes all of them again.

do $$
begin
    if to_regtype('recrawl_internal.intern_item') is null then
        create type recrawl_internal.intern_item as (
            place     int,
            ord       int,
            key       uuid,
            url       text,
            canonical text,
            host      text,
            value     real,
            rate      real,
            due       timestamptz,
            meta      jsonb,
            depth     int,
            asked_as  text
        );
    end if;

    if to_regtype('recrawl_internal.result_element') is null then
        create type recrawl_internal.result_element as (
            page_id       bigint,
            url           text,
            lease_id      bigint,
            status        int,
            fetched_at    timestamptz,
            changed       boolean,
            content_hash  text,
            changes       int,
            last_modified timestamptz,
            etag          text,
            links         text[],
            retry_after   text,
            crawl_delay   float8,
            redirect_to   text,
            robots_denied boolean,
            meta          jsonb,
            relevance     float8,
            sketch        int[],
            due           timestamptz,
            declined      boolean
        );
    end if;

    if to_regtype('recrawl_internal.result') is null then
        create type recrawl_internal.result as (
            ord           int,
            problem       text,
            page_id       bigint,
            url           text,
            lease_id      bigint,
            status        int,
            fetched_at    timestamptz,
            changed       boolean,
            content_hash  text,
            changes       int,
            last_modified timestamptz,
            etag          text,
            links         text[],
            retry_after   interval,
            crawl_delay   interval,
            redirect_to   text,
            robots_denied boolean,
            meta          jsonb,
            relevance     real,
            sketch        int[],
            said_due      timestamptz,
            due_is        text
        );
    end if;

    if to_regtype('recrawl_internal.found_links') is null then
        create type recrawl_internal.found_links as (
            ord      int,
            page_id  bigint,
            targets  bytea,
            moved_to bigint
        );
    end if;

    if to_regtype('recrawl_internal.host_news') is null then
        create type recrawl_internal.host_news as (
            host_id     bigint,
            throttled   boolean,
            retry_after interval,
            status      int,
            late_start  timestamptz,
            freed_by    bigint,
            crawl_delay interval
        );
    end if;
end $$;

comment on type recrawl_internal.intern_item is 'A URL that is about to become a page.';
comment on type recrawl_internal.result_element is 'The keys that an element of the array of report may have.';
comment on type recrawl_internal.result is 'A reported result after the check. problem says why it is invalid.';
comment on type recrawl_internal.found_links is 'Links and redirect of a reported page, as ids of pages.';
comment on type recrawl_internal.host_news is 'The facts about a host in one report.';
