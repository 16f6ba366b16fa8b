-- PostgreSQL grants EXECUTE on every new function to PUBLIC. This file revokes it.
revoke all on all functions in schema recrawl, recrawl_internal from public;
