"""Doubles the wait while a visit is certainly worth too little, and halves it once a visit was certainly worth enough
(Olston & Pandey, Recrawl Scheduling Based on Information Longevity, 2008: the bound-based policy).

It assumes that a page never comes closer again to an earlier version, and nothing else. Between two visits the
divergence may rise right after the first visit or right before the second. These two cases bound the worth of a visit.
It deviates from the source in three points. A profile begins when the wait is halved or the last profile is full, not
at each visit. A wait has a lower and an upper limit, at any threshold. If a profile can tell no more, its interval
counts as too long: otherwise a page that had changed entirely by the first visit would keep its interval forever.
"""

from collections import deque
from dataclasses import dataclass, field

from recrawl.lab.policies.longevity import DivergedSince, Profile, Terms

PROFILES = 10  # over which the worth of a visit is averaged: with 5 or fewer the policy was worse than uniform visits
MOST = 12  # visits of a profile
SATURATED = 0.9  # share of the divergence that the first visit found


@dataclass
class BoundBased:
    terms: Terms
    wait: float = field(init=False)
    profiles: deque[Profile] = field(default_factory=lambda: deque(maxlen=PROFILES))  # the newest is the last

    def __post_init__(self) -> None:
        self.wait = self.terms.first

    def visited(self, today: float, diverged_since: DivergedSince) -> float:
        for profile in self.profiles:
            profile.found(today, max(diverged_since(profile.base), profile.last))
        if not self.profiles:
            self.profiles.append(Profile(today))
            return self.wait
        since = self.profiles[-1]
        days = today - since.base
        least, most = (
            sum(of) / len(self.profiles) for of in zip(*(worth(one, days) for one in self.profiles), strict=True)
        )
        if most < self.terms.threshold:
            self.wait = self.terms.within(2 * days)
            if len(since.days) == MOST:
                self.profiles.append(Profile(today))
        elif least >= self.terms.threshold or tells_no_more(since):
            self.wait = self.terms.within(self.wait / 2)
            self.profiles.append(Profile(today))
        return self.wait


def worth(profile: Profile, days: float) -> tuple[float, float]:
    """The bounds of the worth of a visit that number of days after the base, in divergence · days."""
    least_area = most_area = day = diverged = 0.0
    for next_day, next_diverged in zip(profile.days, profile.diverged, strict=True):
        if next_day > days:  # the divergence rose before that day, or after it
            return day * diverged - most_area, days * next_diverged - least_area - diverged * (days - day)
        least_area += diverged * (next_day - day)
        most_area += next_diverged * (next_day - day)
        day, diverged = next_day, next_diverged
    return day * diverged - most_area, day * diverged - least_area


def tells_no_more(profile: Profile) -> bool:
    """Whether the first visit found about all of the divergence: the visits do not show how it grew."""
    is_saturated = profile.diverged[0] >= SATURATED * profile.last
    return len(profile.days) == MOST or (len(profile.days) > 1 and is_saturated)
