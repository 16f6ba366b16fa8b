"""How fetches are divided is a choice: the setting policy."""

from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.execute("""
        alter table recrawl_internal.setting
            add column policy text not null default 'opt_polite'
            constraint "policy must be one of"
            check (policy in ('opt_polite', 'optimal', 'uniform', 'proportional', 'best_first', 'epsilon_greedy'));
        comment on column recrawl_internal.setting.policy is
            'name: how the next allocation divides the budget. opt_polite: the best within every host''s gap; optimal: '
            'the best as if there were no gaps; uniform: all equally often; proportional: as often as they change; '
            'best_first: each page once, the most valuable first; epsilon_greedy: uniform at first, then opt_polite.';
        update recrawl_internal.allocation set policy = lower(policy);
        comment on column recrawl_internal.allocation.policy is 'The setting policy, which it followed.';
    """)


def downgrade() -> None:
    op.execute("""
        alter table recrawl_internal.setting drop column policy cascade;
        update recrawl_internal.allocation set policy = upper(policy);
        comment on column recrawl_internal.allocation.policy is
            'OPT_POLITE: the best within the budget and every host''s gap.';
        update recrawl_internal.replayed set digest = '';
    """)
