"""Kernels of the feed: the softmax over a user's candidates, and the heat that serving adds."""

from __future__ import annotations

from typing import Any

from rapo_core.jit import lean_kernel

AWAY, ENTERING = -1, -2
"""Last item of an absent user, and of a user who has just come."""


@lean_kernel
def propose(
    last: Any, pushed: Any, page: Any, appeal: Any, push_weight: float, next_items: Any,
    next_weight: Any, own_items: Any, own_weight: Any, region: Any, false: Any, P0: Any,
    items: Any, where: Any, harmful: Any,
) -> None:  # fmt: skip
    """Candidates (E, m, K) of all users: pushed, up next, personal.

    Args:
        last: (E, m) last item.
        pushed: (E, P) pushed items, -1 while nothing is pushed.
        page: (E,) page of personal items on show.
        appeal: (E, N) exp(boost * virality).
        push_weight: exp of the score of a pushed item.
        next_items: (N, U) neighbours of an item.
        next_weight: (N, U) exp of their score.
        own_items: (m, pages, Q) personal items.
        own_weight: (m, pages, Q) exp of their score.
        region: (N,).
        false: (N,) bool.
        P0: (E, m, K), filled; 0 for pads.
        items: (E, m, K), filled.
        where: (E, m, K) their regions, filled.
        harmful: (E, m, K) whether they are false, filled.
    """
    P, U, Q = pushed.shape[1], next_items.shape[1], own_items.shape[2]
    for e in range(last.shape[0]):
        for w in range(last.shape[1]):
            at = last[e, w]
            total = 0.0
            for k in range(P + U + Q):
                item, weight = 0, 0.0
                if k < P:
                    if pushed[e, k] >= 0:
                        item, weight = pushed[e, k], push_weight
                elif k < P + U:
                    if at >= 0:
                        item, weight = next_items[at, k - P], next_weight[at, k - P]
                else:
                    item = own_items[w, page[e], k - P - U]
                    weight = own_weight[w, page[e], k - P - U]
                law = weight * appeal[e, item]
                P0[e, w, k] = law
                items[e, w, k] = item
                where[e, w, k] = region[item]
                harmful[e, w, k] = false[item]
                total += law
            for k in range(P + U + Q):
                P0[e, w, k] /= total


@lean_kernel
def serve(
    items: Any, choice: Any, engagement: Any, social: float, push: int, up_next: int, gain: float,
    last: Any, channel: Any, heat: Any, reward: Any,
) -> None:  # fmt: skip
    """Write the next state of users (E, m) and the rewards (E,); heat (E, N) has cooled already."""
    users = choice.shape[1]
    for e in range(choice.shape[0]):
        reward[e] = 0.0
        for w in range(users):
            k = choice[e, w]
            last[e, w], channel[e, w] = AWAY, 0
            if k >= 0:
                item = items[e, w, k]
                last[e, w] = item
                channel[e, w] = 1 if k < push else 2 if k < push + up_next else 3
                heat[e, item] += gain / users
        for w in range(users):
            item = last[e, w]
            if item >= 0:
                reward[e] += (engagement[w, item] + social * min(heat[e, item], 1.0)) / users
