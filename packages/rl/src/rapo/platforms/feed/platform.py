"""`Feed`: users of a news feed into which campaigns push a false claim and its neighbours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from scipy.stats import rankdata

from rapo.platforms.candidates import Array, Candidates, State
from rapo.platforms.data import data_source
from rapo.platforms.feed.baseline import FalseRateMemory
from rapo.platforms.feed.claims import Claims, claims_of
from rapo.platforms.feed.entry import FEED
from rapo.platforms.feed.serve import AWAY, ENTERING, propose, serve
from rapo.platforms.feed.setting import Setting
from rapo.platforms.map import PlatformMap
from rapo.platforms.memory import RegionMemory
from rapo.platforms.platform import BatchPlatform
from rapo_core.checks import UserError, one_of, whole_number

KERNELS = ("rapo", "false-rate")
OBSERVED = ("served", "on pushed", "on up next", "on personal", "popularity", "heat", "clock")


class Feed(BatchPlatform):
    """A recommender over real claims: 120 users, 20 candidates each, harm reported D steps later.

    `P0` is a softmax over pushed claims, neighbours of the last item by shared audience, and
    personal claims. The action is the weight of virality in the softmax. The stimulus pushes a
    false claim and its neighbours and brings users in; without a stimulus the feed drains. Reward
    is the mean engagement. `x` shows OBSERVED and nothing of the labels.

    Args:
        episodes: E.
        seed: of the platform: it draws the accounts that are users and the false claims to push.
        kernel: `rapo`, or `false-rate` for the field's own baseline in place of the harm memory.
        setting: values that differ from those frozen for `rapo/Feed-v0`, or a whole `Setting`.
        data: `real`, `stand-in`, or `auto`: a stand-in with a warning where data are missing.
        claims: claims to serve, in place of `data`.
        options: of `BatchPlatform`.
    """

    def __init__(
        self,
        episodes: int = 1,
        *,
        seed: int = 0,
        kernel: str = "rapo",
        setting: Mapping[str, Any] | Setting | None = None,
        data: str = "auto",
        claims: Claims | None = None,
        **options: Any,
    ) -> None:
        self.kernel = one_of("kernel", kernel, KERNELS)
        self.setting = s = Setting.of(setting)
        self.claims = claims or claims_of(data_source(data, FEED.env, *FEED.files))
        self.seed = whole_number("seed", seed, 0)
        self._build(np.random.default_rng(self.seed))
        size = len(OBSERVED)
        super().__init__(
            episodes,
            **{
                "walkers": s.users, "actions": len(s.boosts), "stimuli": s.stimuli,
                "observed": gymnasium.spaces.Box(0.0, np.inf, (size,), np.float32),
                "regions": s.regions, "harm_regions": np.unique(self.region[self.claims.false]),
                "delay": s.delay, "saturation": s.saturation, **options,
            },
        )  # fmt: skip
        if kernel == "false-rate" and isinstance(self.memory, RegionMemory):
            self.memory = FalseRateMemory(self.memory, self.scope, s.rate_strength, s.rate_window)
            self.params = self.memory.params
        self._picture: Any = None

    def _build(self, rng: np.random.Generator) -> None:
        """Draw the constants of the platform: users, pushed claims, neighbours and scores."""
        s, claims = self.setting, self.claims
        N = len(claims.size)
        self.region = claims.clusters(s.regions)
        order = claims.nearest
        self.next_items = np.ascontiguousarray(order[:, : s.up_next])
        likeness = np.take_along_axis(claims.likeness, self.next_items, 1)
        self.next_weight = np.exp(s.follow * likeness / likeness[:, :1])
        false = np.flatnonzero(claims.false)
        if len(false) < s.stimuli or claims.histories.shape[0] < s.users:
            raise UserError(
                f"{s.stimuli} stimuli and {s.users} users need as many false claims and accounts, "
                f"got {len(false)} and {claims.histories.shape[0]}"
            )
        first = rng.choice(false, s.stimuli, replace=False)
        self.pushed = np.concatenate([first[:, None], order[first, : s.push - 1]], axis=1)
        users = rng.choice(claims.histories.shape[0], s.users, replace=False)
        history = claims.histories[users].toarray()
        fit = rankdata(history @ claims.likeness, axis=1) / N
        pool = np.argsort(-np.where(history > 0, 0, fit), axis=1)[:, : s.pages * s.personal]
        shape = (s.users, s.pages, s.personal)
        self.own_items = np.ascontiguousarray(
            pool.reshape(s.users, s.personal, s.pages).swapaxes(1, 2), np.int32
        )
        score = s.taste * (1 - np.arange(s.pages * s.personal) / (s.pages * s.personal))
        score = score.reshape(s.personal, s.pages).T
        self.own_weight = np.ascontiguousarray(np.broadcast_to(np.exp(score), shape))
        popularity = rankdata(claims.size) / N
        self.popularity = popularity.astype(np.float32)
        self.engagement = s.popular * popularity + (1 - s.popular - s.social) * fit
        self.boosts = np.array(s.boosts, np.float32)

    def rest(self, episodes: int) -> State:
        """No user is served, no claim is hot."""
        users = (episodes, self.setting.users)
        return {
            "item": np.full(users, AWAY, np.int32),
            "channel": np.zeros(users, np.int8),
            "heat": np.zeros((episodes, len(self.popularity)), np.float32),
        }

    def arrive(self, state: State) -> State:
        """Users open the feed while claims are pushed, and close it by chance."""
        item, chance, s = state["item"], self.draws(1), self.setting
        comes = (item == AWAY) & (chance < s.come) & (self.stimulus_on > 0)[:, None]
        leaves = (item >= 0) & (chance < s.leave)
        return {**state, "item": np.where(comes, ENTERING, np.where(leaves, AWAY, item))}

    def candidates(self, state: State, action: Array) -> Candidates:
        """The softmax over pushed, up-next and personal claims."""
        s, on = self.setting, self.stimulus_on
        pushed = np.where(on[:, None] > 0, self.pushed[on - 1], -1)
        appeal = np.exp(self.boosts[action][:, None] * (self.popularity + state["heat"]))
        shape = (*state["item"].shape, s.push + s.up_next + s.personal)
        P0, items, where = np.empty(shape), np.empty(shape, np.int32), np.empty(shape, np.int32)
        harmful = np.empty(shape, np.bool_)
        propose(
            state["item"], pushed, self.clock % s.pages, appeal, float(np.exp(s.push_level)),
            self.next_items, self.next_weight, self.own_items, self.own_weight, self.region,
            self.claims.false, P0, items, where, harmful,
        )  # fmt: skip
        return Candidates(P0, where, harmful, state["item"] != AWAY, items)

    def transition(
        self, state: State, action: Array, choice: Array, proposed: Candidates
    ) -> tuple[State, Array]:
        """Chosen claims are served, get hotter and engage their users."""
        s = self.setting
        item, channel = np.empty(choice.shape, np.int32), np.empty(choice.shape, np.int8)
        heat, reward = state["heat"] * np.float32(s.heat_kept), np.empty(len(choice))
        serve(
            proposed.items, choice, self.engagement, s.social, s.push, s.up_next, s.heat_gain, item,
            channel, heat, reward,
        )  # fmt: skip
        return {"item": item, "channel": channel, "heat": heat}, reward

    def harmed(self, state: State) -> tuple[Array, Array]:
        """Users on a claim that is labelled false."""
        item = state["item"]
        there = item >= 0
        return there & self.claims.false[item], np.where(there, self.region[item], -1)

    def reach(self, state: State) -> Array:
        """Users on the pushed channel."""
        return np.asarray((state["channel"] == 1).sum(axis=1))

    def observation(self, state: State, clock: Array) -> Array:
        """`x`: shares of users by channel, popularity of the served claims, heat, clock."""
        channel, item = state["channel"], state["item"]
        on = [(channel == kind).mean(axis=1) for kind in (1, 2, 3)]
        popular = np.where(item >= 0, self.popularity[item], 0).mean(axis=1)
        hottest = state["heat"].max(axis=1)
        return np.stack([sum(on), *on, popular, hottest, clock / 500], axis=1)

    def frame(self, episode: int) -> Array:
        """The map of claims: heat, labels, scars and where users are."""
        from rapo.platforms.feed.picture import Picture

        if self._picture is None:
            self._picture = Picture(self)
        return np.asarray(self._picture.draw(episode))

    def map(self) -> PlatformMap:
        """The claims in the discs of their regions."""
        from rapo.platforms.feed.map import feed_map

        return feed_map(self)

    def describe(self) -> dict[str, Any]:
        """Which data, users and kernel."""
        return {"data": self.claims.source, "seed": self.seed, "kernel": self.kernel}
