"""Networks with a backward pass written out, against torch's own modules and autograd."""

import numpy as np
import pytest
import torch

from rapo.agents.networks import GRU, MLP, Buffer

CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def built(kind, inputs, hidden, outputs, seed=0):
    """A network with weights and biases all different from zero, and its buffer."""
    buffer = Buffer([kind.shapes(inputs, hidden, outputs)])
    buffer.values.copy_(0.4 * torch.randn(len(buffer.values), generator=_draws(seed)))
    buffer.gradient.fill_(torch.nan)  # a backward pass that leaves an entry out shows
    return kind(*buffer.views[0]), buffer


def _draws(seed):
    return torch.Generator().manual_seed(seed)


def torch_mlp(values):
    w1, b1, w2, b2, last, b3 = values
    w3 = last.t()  # stored (out, in)
    layers = [torch.nn.Linear(*w.shape) for w in (w1, w2, w3)]
    with torch.no_grad():
        for layer, w, b in zip(layers, (w1, w2, w3), (b1, b2, b3), strict=True):
            layer.weight.copy_(w.t())
            layer.bias.copy_(b)
    relu = torch.nn.ReLU()
    return torch.nn.Sequential(layers[0], relu, layers[1], relu, layers[2])


def torch_gru(values):
    w_x, b_x, w_h, b_h, last, b = values
    w = last.t()  # stored (out, in)
    cell = torch.nn.GRUCell(w_x.shape[0], w_h.shape[0])
    head = torch.nn.Linear(*w.shape)
    with torch.no_grad():
        cell.weight_ih.copy_(w_x.t())
        cell.bias_ih.copy_(b_x)
        cell.weight_hh.copy_(w_h.t())
        cell.bias_hh.copy_(b_h)
        head.weight.copy_(w.t())
        head.bias.copy_(b)
    return cell, head


@pytest.mark.parametrize(
    ("batch", "inputs", "hidden", "outputs"), [(1, 1, 1, 1), (7, 5, 16, 3), (300, 12, 64, 4)]
)
def test_mlp_equals_torch_forward_and_backward(batch, inputs, hidden, outputs):
    network, _ = built(MLP, inputs, hidden, outputs)
    theirs = torch_mlp(network.values)
    x = torch.randn(batch, inputs, generator=_draws(1))
    slope = torch.randn(batch, outputs, generator=_draws(2))
    expected = theirs(x)
    expected.backward(slope)
    assert torch.allclose(network.forward(x), expected, **CLOSE)
    network.backward(slope)
    wanted = [part for layer in theirs[::2] for part in (layer.weight.grad.t(), layer.bias.grad)]
    wanted[4] = wanted[4].t()
    for found, grad in zip(network.gradient, wanted, strict=True):
        assert torch.allclose(found, grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("steps", "sequences", "inputs", "hidden", "outputs"),
    [(1, 1, 1, 1, 1), (9, 5, 4, 8, 3), (30, 3, 6, 32, 2)],
)
@pytest.mark.parametrize("resets", ["none", "first", "some", "all"])
def test_gru_equals_an_autograd_loop_with_resets(steps, sequences, inputs, hidden, outputs, resets):
    network, _ = built(GRU, inputs, hidden, outputs)
    cell, head = torch_gru(network.values)
    x = torch.randn(steps, sequences, inputs, generator=_draws(1))
    h0 = torch.randn(sequences, hidden, generator=_draws(2))
    slope = torch.randn(steps, sequences, outputs, generator=_draws(3))
    keep = torch.ones(steps, sequences, 1)
    if resets == "first":
        keep[0] = 0
    elif resets == "some":
        keep = (torch.rand(keep.shape, generator=_draws(4)) > 0.3).float()
    elif resets == "all":
        keep.zero_()

    h, logits = h0, []
    for t in range(steps):
        h = cell(x[t], torch.where(keep[t] == 0, torch.zeros_like(h), h))
        logits.append(head(h))
    expected = torch.stack(logits)
    expected.backward(slope)

    assert torch.allclose(network.forward(x, h0, keep), expected, **CLOSE)
    network.backward(slope)
    wanted = [
        cell.weight_ih.grad.t(), cell.bias_ih.grad, cell.weight_hh.grad.t(), cell.bias_hh.grad,
        head.weight.grad, head.bias.grad,
    ]  # fmt: skip
    for found, grad in zip(network.gradient, wanted, strict=True):
        assert torch.allclose(found, grad, rtol=1e-3, atol=1e-4)


def test_gru_without_resets_equals_torchs_whole_sequence_module():
    network, _ = built(GRU, 4, 8, 3)
    cell, head = torch_gru(network.values)
    whole = torch.nn.GRU(4, 8)
    whole.load_state_dict({f"{name}_l0": value for name, value in cell.state_dict().items()})
    x, h0 = torch.randn(12, 5, 4, generator=_draws(1)), torch.randn(5, 8, generator=_draws(2))
    expected = head(whole(x, h0[None])[0])
    assert torch.allclose(network.forward(x, h0, torch.ones(12, 5, 1)), expected, **CLOSE)


def test_gru_steps_equal_forward():
    network, _ = built(GRU, 5, 16, 3)
    x, h = torch.randn(20, 4, 5, generator=_draws(1)), torch.randn(4, 16, generator=_draws(2))
    keep = (torch.rand(20, 4, 1, generator=_draws(3)) > 0.2).float()
    assert not keep[1:].all()
    whole = network.forward(x, h, keep)
    for t in range(20):
        logits, h = network.step(x[t], h * keep[t])
        assert torch.allclose(logits, whole[t], **CLOSE)


def test_forward_does_not_change_what_it_is_given():
    network, _ = built(GRU, 3, 4, 2)
    x, h, keep = torch.randn(5, 2, 3), torch.randn(2, 4), torch.zeros(5, 2, 1)
    before = [part.clone() for part in (x, h, keep)]
    network.forward(x, h, keep)
    network.backward(torch.ones(5, 2, 2))
    assert all(torch.equal(a, b) for a, b in zip(before, (x, h, keep), strict=True))


def test_views_are_the_buffer_in_order_and_without_gaps():
    shapes = [GRU.shapes(3, 4, 2), MLP.shapes(7, 5, 1)]
    buffer = Buffer(shapes)
    buffer.values.copy_(torch.arange(len(buffer.values)))
    buffer.gradient.copy_(-torch.arange(len(buffer.values)))
    for part, flat in enumerate((buffer.values, buffer.gradient)):
        pieces = [view for network in buffer.views for view in network[part]]
        assert [tuple(p.shape) for p in pieces] == [s for network in shapes for s in network]
        assert torch.equal(torch.cat([p.reshape(-1) for p in pieces]), flat)
        for piece in pieces:
            piece.add_(0.5)
        assert torch.equal(torch.cat([p.reshape(-1) for p in pieces]), flat)
        assert (flat % 1 == 0.5).all()
    assert len(buffer.values) == sum(np.prod(s) for network in shapes for s in network)


@pytest.mark.parametrize("kind", [MLP, GRU])
def test_backward_fills_the_flat_gradient_anew(kind):
    network, buffer = built(kind, 3, 4, 2)
    x = torch.randn(6, 3)
    if kind is MLP:
        network.forward(x)
        slope = torch.ones(6, 2)
    else:
        network.forward(x.view(3, 2, 3), torch.zeros(2, 4), torch.ones(3, 2, 1))
        slope = torch.ones(3, 2, 2)
    network.backward(slope)
    once = buffer.gradient.clone()
    assert torch.isfinite(once).all() and once.any()
    network.backward(slope)
    assert torch.equal(buffer.gradient, once)  # not added up


@pytest.mark.parametrize("kind", [MLP, GRU])
def test_initialise_follows_its_seed(kind):
    def fresh(seed):
        buffer = Buffer([kind.shapes(3, 8, 2)])
        kind(*buffer.views[0]).initialise(0.01, _draws(seed))
        return buffer.values

    assert torch.equal(fresh(3), fresh(3))
    assert not torch.equal(fresh(3), fresh(4))


@pytest.mark.parametrize("kind", [MLP, GRU])
def test_initialise_gives_orthogonal_weights_zero_biases_and_a_small_head(kind):
    buffer = Buffer([kind.shapes(8, 8, 8)])
    network = kind(*buffer.views[0])
    network.initialise(0.01, _draws(0))
    assert not any(bias.any() for bias in network.values[1::2])
    inner = network.values[2] if kind is MLP else network.values[2][:, 8:16]
    gain = 2 if kind is MLP else 1
    assert torch.allclose(inner.t() @ inner, gain * torch.eye(8), atol=1e-5)
    head = network.values[4]
    assert torch.allclose(head.t() @ head, 1e-4 * torch.eye(8), atol=1e-7)
