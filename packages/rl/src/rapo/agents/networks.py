"""Policy and value networks with their backward pass written out, all parameters in one buffer.

Three matrix products a layer are nearly all of the work; written out they go straight into one flat
gradient, which Adam and the clipping then touch in one call. Tests hold both networks against
torch's own modules and autograd. Weights are stored (in, out), those of the narrow last layer (out,
in): each is the faster way to multiply them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

import torch
from torch import Tensor
from torch.nn.functional import linear

from rapo.agents.gru_kernel import run_backward, run_forward

Shape = tuple[int, ...]


class Buffer:
    """Parameters and gradients of several networks, each as one flat tensor.

    Args:
        shapes: shapes of each network's parameters, in order.
    """

    def __init__(self, shapes: Sequence[Sequence[Shape]]) -> None:
        size = sum(prod(shape) for network in shapes for shape in network)
        self.values = torch.zeros(size)
        self.gradient = torch.zeros(size)
        self.views: list[tuple[list[Tensor], list[Tensor]]] = []
        at = 0
        for network in shapes:
            parts: tuple[list[Tensor], list[Tensor]] = ([], [])
            for shape in network:
                end = at + prod(shape)
                for part, flat in zip(parts, (self.values, self.gradient), strict=True):
                    part.append(flat[at:end].view(shape))
                at = end
            self.views.append(parts)


def _fill(weight: Tensor, gain: float, generator: torch.Generator) -> None:
    torch.nn.init.orthogonal_(weight, gain, generator=generator)


class Rows:
    """Matrices that are filled anew again and again.

    A fresh one of this size costs as much in page faults as a fifth of the product that fills it.

    Args:
        count: how many matrices.
        width: of each.
    """

    def __init__(self, count: int, width: int) -> None:
        self.whole = torch.empty(count, 0, width)

    def first(self, rows: int) -> tuple[Tensor, ...]:
        """The matrices (rows, width); what an earlier call gave is no longer anyone's."""
        if rows > self.whole.shape[1]:
            count, _, width = self.whole.shape
            self.whole = torch.empty(count, rows, width)
        return self.whole[:, :rows].unbind()


class MLP:
    """Two hidden ReLU layers.

    Args:
        values: weights and biases, views of shape `MLP.shapes(...)`.
        gradient: views for their gradients.
    """

    def __init__(self, values: Sequence[Tensor], gradient: Sequence[Tensor]) -> None:
        self.values, self.gradient = values, gradient
        hidden = len(values[1])
        self.layers, self.slopes = Rows(2, hidden), Rows(2, hidden)
        self.kept: tuple[Tensor, ...] = ()

    @staticmethod
    def shapes(inputs: int, hidden: int, outputs: int) -> list[Shape]:
        """Shapes of the six parameters."""
        return [
            (inputs, hidden),
            (hidden,),
            (hidden, hidden),
            (hidden,),
            (outputs, hidden),
            (outputs,),
        ]

    def initialise(self, last_gain: float, generator: torch.Generator) -> None:
        """Orthogonal weights, zero biases; a small `last_gain` starts near a uniform policy."""
        for weight, gain in zip(self.values[::2], (sqrt(2), sqrt(2), last_gain), strict=True):
            _fill(weight, gain, generator)

    def forward(self, x: Tensor) -> Tensor:
        """Outputs (B, outputs) for inputs (B, inputs)."""
        w1, b1, w2, b2, w3, b3 = self.values
        first, second = self.layers.first(len(x))
        torch.addmm(b1, x, w1, out=first).relu_()
        torch.addmm(b2, first, w2, out=second).relu_()
        self.kept = (x, first, second)
        return linear(second, w3, b3)

    def backward(self, slope: Tensor) -> None:
        """Gradients of the last `forward`, from the slope (B, outputs) of the loss."""
        _, _, w2, _, w3, _ = self.values
        g1, c1, g2, c2, g3, c3 = self.gradient
        x, first, second = self.kept
        torch.mm(slope.t(), second, out=g3)
        torch.sum(slope, 0, out=c3)
        into_second, into_first = self.slopes.first(len(x))
        _where_positive(torch.mm(slope, w3, out=into_second), second)
        torch.mm(first.t(), into_second, out=g2)
        torch.sum(into_second, 0, out=c2)
        _where_positive(torch.mm(into_second, w2.t(), out=into_first), first)
        torch.mm(x.t(), into_first, out=g1)
        torch.sum(into_first, 0, out=c1)


def _where_positive(slope: Tensor, layer: Tensor) -> None:
    """Set the slope to 0 where the ReLU layer is."""
    torch.ops.aten.threshold_backward.grad_input(slope, layer, 0, grad_input=slope)


class GRU:
    """A gated recurrent unit (torch's form: reset, update, new) with a linear head.

    Args:
        values: weights and biases, views of shape `GRU.shapes(...)`.
        gradient: views for their gradients.
    """

    def __init__(self, values: Sequence[Tensor], gradient: Sequence[Tensor]) -> None:
        self.values, self.gradient = values, gradient
        self.kept: tuple[Tensor, ...] = ()

    @staticmethod
    def shapes(inputs: int, hidden: int, outputs: int) -> list[Shape]:
        """Shapes of the six parameters."""
        return [
            (inputs, 3 * hidden),
            (3 * hidden,),
            (hidden, 3 * hidden),
            (3 * hidden,),
            (outputs, hidden),
            (outputs,),
        ]

    def initialise(self, last_gain: float, generator: torch.Generator) -> None:
        """Orthogonal weights per gate, zero biases."""
        w_x, _, w_h, _, w, _ = self.values
        for weight in (*w_x.chunk(3, dim=1), *w_h.chunk(3, dim=1)):
            _fill(weight, 1.0, generator)
        _fill(w, last_gain, generator)

    def step(self, x: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        """Logits (S, outputs) and the next state (S, hidden) from x (S, inputs) and h."""
        w_x, b_x, w_h, b_h, w, b = self.values
        h = _cell(torch.addmm(b_x, x, w_x), torch.addmm(b_h, h, w_h), h)
        return linear(h, w, b), h

    def forward(self, x: Tensor, h: Tensor, keep: Tensor) -> Tensor:
        """Logits (T, S, outputs) of S sequences of T steps.

        Args:
            x: (T, S, inputs).
            h: (S, hidden) states before the first step.
            keep: (T, S, 1), 0 where the state is forgotten before the step, else 1.
        """
        w_x, b_x, w_h, b_h, w, b = self.values
        T, S, inputs = x.shape
        hidden = w_h.shape[0]
        from_x = torch.addmm(b_x, x.reshape(T * S, inputs), w_x).view(T, S, 3 * hidden)
        states = torch.empty(T, S, hidden)
        befores = torch.empty(T, S, hidden)
        gates = torch.empty(T, S, 4 * hidden)  # reset, update, new, and what state gives to new
        recur = (from_x, w_h, b_h, h.contiguous(), keep.view(T, S), states, befores, gates)
        run_forward(*(part.numpy() for part in recur))
        self.kept = (x, keep, states, befores, gates)
        return linear(states.view(T * S, hidden), w, b).view(T, S, -1)

    def backward(self, slope: Tensor) -> None:
        """Gradients of the last `forward`, from the slope (T, S, outputs) of the loss."""
        _, _, w_h, _, w, _ = self.values
        g_x, c_x, g_h, c_h, g, c = self.gradient
        x, keep, states, befores, gates = self.kept
        T, S, hidden = states.shape
        flat = slope.reshape(T * S, -1)
        torch.mm(flat.t(), states.view(T * S, hidden), out=g)
        torch.sum(flat, 0, out=c)
        arriving = (flat @ w).view(T, S, hidden)
        to_x = torch.empty(T, S, 3 * hidden)
        to_h = torch.empty(T, S, 3 * hidden)
        back = w_h.t().contiguous()
        recur = (arriving, back, keep.view(T, S), befores, gates, to_x, to_h)
        run_backward(*(part.numpy() for part in recur))
        into_x, into_h = to_x.view(T * S, -1), to_h.view(T * S, -1)
        torch.mm(x.reshape(T * S, -1).t(), into_x, out=g_x)
        torch.sum(into_x, 0, out=c_x)
        torch.mm(befores.view(T * S, hidden).t(), into_h, out=g_h)
        torch.sum(into_h, 0, out=c_h)


def _cell(from_x: Tensor, from_h: Tensor, h: Tensor) -> Tensor:
    """The state after one step of the unit, from its two linear maps (S, 3 hidden)."""
    hidden = h.shape[1]
    both = torch.sigmoid(from_x[:, : 2 * hidden] + from_h[:, : 2 * hidden])
    reset, update = both.chunk(2, dim=1)
    gave = from_h[:, 2 * hidden :]
    new = torch.tanh(torch.addcmul(from_x[:, 2 * hidden :], reset, gave))
    return torch.lerp(new, h, update)
