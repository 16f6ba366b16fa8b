"""Changes functions only: a report needs less CPU. Locks: nothing."""

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    pass


def downgrade() -> None:
    pass
