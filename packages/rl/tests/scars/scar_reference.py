"""A kernel field and a density field of one episode, slow and obvious, point by point."""

import math


def squared(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


class Slow:
    """What both share: the order of a step's points, deposits, and the fields of a place."""

    def __init__(self, width, most, params):
        self.width, self.most, self.params = width, most, params
        self.at, self.G, self.H, self.merges = [], [], [], 0
        self.cap = 1.5 * math.log(1 / params.psi_min) / params.w_H

    def step(self, points, shares):
        """Points in the unit cube; a share of 0 is a visit."""
        order = sorted(zip(points, shares, strict=True), key=lambda p: (p[1] == 0, *p[0], p[1]))
        for point, share in order:
            self.learn([float(x) for x in point], float(share))
        p = self.params
        for c, at in enumerate(self.at):
            inflow = sum(
                share * math.exp(-squared(at, point) / (2 * self.width**2))
                for point, share in order
                if share > 0 and squared(at, point) <= (3 * self.width) ** 2
            )
            scar = p.delta * self.H[c] + p.eta * max(self.G[c] - p.tau, 0)
            self.H[c] = min(scar, self.cap)
            self.G[c] = (1 - p.lam) * self.G[c] + p.alpha * inflow

    def nearest(self, point):
        """The place that is nearest to a point, and its squared distance."""
        gaps = [squared(at, point) for at in self.at]
        return (gaps.index(min(gaps)), min(gaps)) if gaps else (None, math.inf)

    def closest(self):
        """The squared distance of the two nearest places, and which they are."""
        n = len(self.at)
        return min((squared(self.at[a], self.at[b]), b, a) for a in range(n) for b in range(a))


class SlowKernel(Slow):
    """Centres, see `KernelField`."""

    def __init__(self, *how):
        super().__init__(*how)
        self.spacing = (self.width / 2) ** 2

    def fields(self, point):
        """G and H: squared means of roots under a kernel a third as wide."""
        narrow = self.width / 3
        near = [
            (math.exp(-squared(at, point) / (2 * narrow**2)), G, H)
            for at, G, H in zip(self.at, self.G, self.H, strict=True)
            if squared(at, point) <= self.width**2
        ]
        least = math.exp(-1.125)  # of a centre half a width away
        total = max(sum(w for w, _, _ in near), least)
        return tuple(sum(n[0] * math.sqrt(n[i]) for n in near) ** 2 / total**2 for i in (1, 2))

    def psi(self, point):
        G, H = self.fields(point)
        p = self.params
        return max(math.exp(-p.w_G * G - p.w_H * H), p.psi_min)

    def learn(self, point, share):
        near, gap = self.nearest(point)
        if gap <= self.spacing:
            return
        new = self.fields(point)
        if share == 0:
            if self.psi(point) > 0.98:
                return
            new = 0.0, 0.0
        if len(self.at) < self.most:
            self.at.append(point)
            self.G.append(new[0])
            self.H.append(new[1])
            return
        self.merges += 1
        least, a, b = self.closest()
        self.spacing = max(self.spacing, min(least, gap))
        if least >= gap:
            if share == 0 or self.G[near] > 0 or self.H[near] > 0:
                return
            slot = near
        else:
            stays, slot = max((self.H[i], self.G[i], i) for i in (a, b))[2], a + b
            slot -= stays
            self.G[stays] = max(self.G[a], self.G[b])
        self.at[slot], self.G[slot], self.H[slot] = point, *new


class SlowDensity(Slow):
    """Components, see `DensityField`; `seen` are the points and shares that each is made of."""

    def __init__(self, *how):
        super().__init__(*how)
        self.spacing = (0.75 * self.width) ** 2
        self.seen = []

    def spread(self, c):
        """Mean squared distance of a component's harm from its mean."""
        mass = sum(share for _, share in self.seen[c])
        return sum(share * squared(point, self.at[c]) for point, share in self.seen[c]) / mass

    def fields(self, point):
        """G and H: means over components, each as wide as its harm lies."""
        near = []
        for c, at in enumerate(self.at):
            wide = (0.4 * self.width) ** 2 + 0.5 * self.spread(c)
            if squared(at, point) <= 9 * wide:
                near.append((math.exp(-squared(at, point) / (2 * wide)), self.G[c], self.H[c]))
        total = max(sum(w for w, _, _ in near), 1)
        return tuple(sum(n[0] * n[i] for n in near) / total for i in (1, 2))

    def join(self, c, harm):
        """More harm of a component, which moves to the mean of all."""
        self.seen[c] += harm
        mass = sum(share for _, share in self.seen[c])
        d = len(self.at[c])
        self.at[c] = [sum(share * x[j] for x, share in self.seen[c]) / mass for j in range(d)]

    def learn(self, point, share):
        if share == 0:
            return
        near, gap = self.nearest(point)
        if gap <= self.spacing:
            self.join(near, [(point, share)])
            return
        if len(self.at) < self.most:
            self.at.append(point)
            self.seen.append([(point, share)])
            self.G.append(0.0)
            self.H.append(0.0)
            return
        self.merges += 1
        least, a, b = self.closest()
        self.spacing = max(self.spacing, min(least, gap))
        if least >= gap:
            self.join(near, [(point, share)])
            return
        self.join(a, self.seen[b])
        self.G[a], self.H[a] = max(self.G[a], self.G[b]), max(self.H[a], self.H[b])
        self.at[b], self.seen[b], self.G[b], self.H[b] = point, [(point, share)], 0.0, 0.0
