"""The equilibrium stands still, its gradient is the implicit function theorem's, and the network learns the digits."""

from __future__ import annotations

import numpy as np

import tracer.numpy as tnp
from tracer import grad, jacfwd, jit, nn, random
from tracer.examples import digits, equilibrium


def test_the_loops_gradient_is_that_of_the_implicit_function_theorem(rng: np.random.Generator) -> None:
    layer = nn.cast(equilibrium.Equilibrium(5, 7, key=random.key(0)), "float64")
    x, towards = rng.standard_normal((1, 5)), rng.standard_normal((1, 7))

    @jit
    def implicit(layer: equilibrium.Equilibrium, x: tnp.ndarray, z: tnp.ndarray) -> tuple[tnp.ndarray, tnp.ndarray]:
        """Solve (I - ∂f/∂z)ᵀ u = towards at the state z = f(z, x), and return u ∂f/∂x."""

        def f(z: tnp.ndarray, x: tnp.ndarray) -> tnp.ndarray:
            return tnp.tanh(z @ layer.weight().T + layer.inward(x))

        by_state = jacfwd(lambda z: f(z[None], x)[0])(z[0])
        pulled = tnp.linalg.solve((tnp.eye(7) - by_state).T, towards[0])
        return grad(lambda x: (pulled * f(z, x)).sum())(x), f(z, x)

    z = layer(x)
    wanted, again = implicit(layer, x, z)
    np.testing.assert_allclose(again, z, atol=equilibrium.TOLERANCE)
    np.testing.assert_allclose(grad(lambda x: (towards * layer(x)).sum())(x), wanted, atol=1e-3)


def test_the_network_learns_the_digits(seed: int) -> None:
    model, losses = equilibrium.train(random.key(seed), steps=110)
    x, y = digits.split().held_out
    assert equilibrium.accuracy(model, x, y) > 0.88
    assert np.mean(losses[-22:]) < 0.6 < losses[0]
    shrunk = equilibrium.Network(key=random.key(seed)).body.settled(x)[1]
    assert model.body.settled(x)[1] > shrunk  # a trained state takes longer to come to rest
