"""The network of `NetworkField`: two hidden layers on random Fourier features, in torch.

The caller owns the network's state as plain arrays, so a snapshot is a copy of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

Array = npt.NDArray[np.floating[Any]]

FEATURES = 64
"""Random directions, each a sine and a cosine."""
RATE, BETAS, TINY = 3e-3, (0.9, 0.99), 1e-8
"""Adam's constants."""
LEAST_DECAY, MOST_DECAY = 1e-5, 1e-1
"""Range of the weight decay, which the error of held-out places steers."""
SLACK = 1.2
"""Weight decay rises while the error of held-out places is this many times that of the others."""


class Perceptron:
    """Maps a point of the unit cube to psi in [0, 1], and begins near 1 everywhere."""

    def __init__(self, dimensions: int, width: float, hidden: int, seed: int) -> None:
        draw = np.random.default_rng(seed)
        waves = draw.normal(size=(dimensions, FEATURES)) / (2 * width)
        self._waves = torch.tensor(waves, dtype=torch.float32)
        shapes = [(2 * FEATURES, hidden), (hidden,), (hidden, hidden), (hidden,), (hidden, 1), (1,)]
        self._shapes = shapes
        first = [
            draw.normal(size=s) / np.sqrt(s[0]) if len(s) == 2 else np.zeros(s) for s in shapes
        ]
        first[-1][:] = 4.0  # the sigmoid's argument where nothing was learned: psi .98
        self._first = np.concatenate([part.ravel() for part in first]).astype(np.float32)

    def fresh(self) -> dict[str, npt.NDArray[Any]]:
        """Weights, Adam's moments, its clock and the weight decay, before anything is learned."""
        return {
            "weights": self._first.copy(),
            "momentum": np.zeros_like(self._first),
            "scale": np.zeros_like(self._first),
            "clock": np.zeros(1, np.int64),
            "decay": np.full(1, LEAST_DECAY),
        }

    def predict(self, mine: dict[str, npt.NDArray[Any]], points: Array) -> Array:
        """Psi in [0, 1] of points (n, d), with the weights of one episode."""
        with torch.no_grad():
            predicted = self._forward(torch.from_numpy(mine["weights"]), self._features(points))
        return np.asarray(predicted.numpy(), np.float64)

    def train(
        self,
        mine: dict[str, npt.NDArray[Any]],
        points: Array,
        target: Array,
        held: npt.NDArray[np.bool_],
        iterations: int,
    ) -> None:
        """Take steps of Adam on the places that are not held out, in place.

        Args:
            mine: state of one episode, as `fresh` has it.
            points: (n, d).
            target: psi, (n,).
            held: bool (n,), places that are held out.
            iterations: >= 1.
        """
        features, psi = self._features(points), torch.tensor(target, dtype=torch.float32)
        learned, judges = torch.from_numpy(~held), torch.from_numpy(held)
        weights = torch.from_numpy(mine["weights"])
        momentum, scale = torch.from_numpy(mine["momentum"]), torch.from_numpy(mine["scale"])
        for _ in range(iterations):
            leaf = weights.clone().requires_grad_(True)
            error = (self._forward(leaf, features) - psi) ** 2
            loss = error[learned].mean()
            (slope,) = torch.autograd.grad(loss, leaf)
            mine["clock"] += 1
            momentum.mul_(BETAS[0]).add_(slope, alpha=1 - BETAS[0])
            scale.mul_(BETAS[1]).addcmul_(slope, slope, value=1 - BETAS[1])
            t = int(mine["clock"][0])
            mean, square = momentum / (1 - BETAS[0] ** t), scale / (1 - BETAS[1] ** t)
            weights.mul_(1 - RATE * float(mine["decay"][0]))
            weights.sub_(RATE * mean / (square.sqrt() + TINY))
            if held.any():
                worse = float(error[judges].mean().detach()) > SLACK * float(loss.detach())
                decay = mine["decay"] * (1.1 if worse else 1 / 1.1)
                mine["decay"][:] = np.clip(decay, LEAST_DECAY, MOST_DECAY)

    def _features(self, points: Array) -> torch.Tensor:
        phase = torch.tensor(points, dtype=torch.float32) @ self._waves
        return torch.cat([torch.sin(phase), torch.cos(phase)], dim=1)

    def _forward(self, weights: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        parts, start = [], 0
        for shape in self._shapes:
            size = int(np.prod(shape))
            parts.append(weights[start : start + size].reshape(shape))
            start += size
        x = torch.tanh(x @ parts[0] + parts[1])
        x = torch.tanh(x @ parts[2] + parts[3])
        return torch.sigmoid((x @ parts[4] + parts[5])[:, 0])
