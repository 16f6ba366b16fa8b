"""Waits twice as long while a visit is surely worth too little, half as long once it surely was worth enough (Olston &
Pandey, Recrawl Scheduling Based on Information Longevity, 2008: the bound-based policy).

It assumes that a page never comes closer again to what it was; nothing else. Between two visits the divergence rises
at once after the first or just before the second: between these lies what a visit is worth. It deviates from the
source in that a profile begins at each reference, not at each visit; that waits have a longest and a shortest, whatever
the threshold; and where a profile can tell no more its interval counts as too long, as a page that had changed entirely
by the first visit would otherwise keep its interval for ever.
"""

from collections import deque
from dataclasses import dataclass, field

from recrawl.lab.policies.longevity import DivergedSince, Profile, Terms

PROFILES = 10  # that what a visit is worth is averaged over: 5 and fewer did worse than uniform visits
MOST = 12  # visits that an interval is looked at for
SATURATED = 0.9  # of the divergence, that was there by the first visit


@dataclass
class BoundBased:
    terms: Terms
    wait: float = field(init=False)
    profiles: deque[Profile] = field(default_factory=lambda: deque(maxlen=PROFILES))  # the last one is the reference's

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
    """What a visit so many days after the base was at least and at most worth, in divergence · days."""
    least_area = most_area = day = diverged = 0.0
    for next_day, next_diverged in zip(profile.days, profile.diverged, strict=True):
        if next_day > days:  # that much by then, or only afterwards
            return day * diverged - most_area, days * next_diverged - least_area - diverged * (days - day)
        least_area += diverged * (next_day - day)
        most_area += next_diverged * (next_day - day)
        day, diverged = next_day, next_diverged
    return day * diverged - most_area, day * diverged - least_area


def tells_no_more(profile: Profile) -> bool:
    """Of a page that was as far gone by the first visit as by later ones, nobody saw how that came about."""
    is_saturated = profile.diverged[0] >= SATURATED * profile.last
    return len(profile.days) == MOST or (len(profile.days) > 1 and is_saturated)
