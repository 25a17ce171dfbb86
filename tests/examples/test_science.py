"""The examples from science agree with theory, with published figures, and with SciPy and scikit-learn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.integrate
from sklearn.datasets import load_breast_cancer, load_sample_image
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, vmap
from tracer.examples import components, deblurring, digits, gaussian_process, posterior, predators, turbulence


def test_waves_are_those_of_a_solver_of_scipy() -> None:
    points, end = 64, 10.0
    waves = 2 * np.pi * np.fft.rfftfreq(points, turbulence.LENGTH / points)
    kept = waves < 2 / 3 * waves.max()

    def change(_: float, u: Any) -> Any:
        modes = np.fft.rfft(u)
        return np.fft.irfft((waves**2 - waves**4) * modes - 0.5j * waves * kept * np.fft.rfft(u**2), points)

    start = turbulence.smooth_start(points)
    exact = scipy.integrate.solve_ivp(change, (0, end), start, method="LSODA", rtol=1e-11, atol=1e-12).y[:, -1]
    errors = []
    for step in (0.25, 0.125):
        values = turbulence.solution(start, int(end / step), step=step)
        errors.append(np.abs(np.asarray(values[-1]) - exact).max())
    assert errors[1] < 5e-6
    assert errors[0] / errors[1] > 12  # fourth order


def test_gradients_go_through_chaotic_waves(rng: np.random.Generator) -> None:
    start = turbulence.smooth_start(64)
    direction = 1e-6 * rng.standard_normal(64)
    _, slope = turbulence.later_energy(start, steps=60)
    up, down = (turbulence.later_energy(start + sign * direction, steps=60)[0] for sign in (1, -1))
    np.testing.assert_allclose((up - down) / 2, tnp.vdot(slope, direction), rtol=1e-6)


def test_components_of_digits_are_those_of_scikit_learn() -> None:
    images = digits.load().images.astype("float64")
    ours, theirs = components.principal_components(images, count=10), PCA(10, svd_solver="full").fit(images)
    np.testing.assert_allclose(ours.variances, theirs.explained_variance_, rtol=1e-10)
    np.testing.assert_allclose(ours.shares, theirs.explained_variance_ratio_, rtol=1e-10)
    np.testing.assert_allclose(np.abs(ours.project(images)), np.abs(theirs.transform(images)), atol=1e-8)
    left = images - np.asarray(ours.restore(ours.project(images)))
    np.testing.assert_allclose((left**2).sum() / ((images - images.mean(axis=0)) ** 2).sum(), 1 - ours.shares.sum())


def test_sharp_edges_restore_a_photograph_better_than_a_linear_filter(rng: np.random.Generator) -> None:
    image = load_sample_image("china.jpg")[60:188, 140:332].transpose(2, 0, 1) / 255.0
    transfer = deblurring.motion_blur(image.shape[1:], length=15, slope=0.5)
    seen = vmap(lambda channel: deblurring.blurred(channel, transfer))(image) + 0.01 * rng.standard_normal(image.shape)
    linear = vmap(lambda channel: deblurring.wiener(channel, transfer, 0.01))(seen)
    sharp = deblurring.sharpened(seen, transfer, steps=150)
    blurred, by_filter, by_prior = (deblurring.psnr(x, image) for x in (seen, linear, sharp))
    assert by_filter > blurred + 4
    assert by_prior > by_filter + 0.5


def test_lynxes_and_hares_have_the_published_rates() -> None:
    """Means of the posterior of Carpenter 2018, Predator-prey population dynamics, a case study of Stan."""
    rates, errors = predators.fit()
    np.testing.assert_allclose(rates[:4], [0.55, 0.028, 0.024, 0.80], rtol=0.05)
    assert errors[-1] < 0.05 < errors[0]
    np.testing.assert_allclose(grad(predators.misfit)(tuple_of_logs(rates)), np.zeros(6), atol=2e-3)


def tuple_of_logs(rates: predators.Rates) -> predators.Rates:
    return predators.Rates(*map(tnp.log, rates))


@pytest.fixture(scope="module")
def cancer() -> SimpleNamespace:
    data = load_breast_cancer()
    features = data.data[:, :6]
    return SimpleNamespace(x=(features - features.mean(axis=0)) / features.std(axis=0), y=data.target.astype("float64"))


def test_samples_have_the_posteriors_mean_and_spread(cancer: SimpleNamespace) -> None:
    """The reference is importance sampling from the normal distribution around the mode."""
    samples = posterior.sample_posterior(tracer.random.key(0), cancer.x, cancer.y)
    worth = posterior.effective_sample_size(samples.values)
    assert 400 < worth.min() < worth.max() < 4000
    assert 0.6 < samples.acceptance.min() < samples.acceptance.max() < 0.97

    density = jit(vmap(lambda w: posterior.log_posterior(w, cancer.x, cancer.y)))
    values = np.asarray(samples.values).reshape(2000, -1)
    mode, spread = values.mean(axis=0), np.cov(values.T)
    rng = np.random.default_rng(1)
    draws = mode + rng.multivariate_normal(0 * mode, 1.3 * spread, 40_000)
    proposed = -0.5 * np.einsum("ij,jk,ik->i", draws - mode, np.linalg.inv(1.3 * spread), draws - mode)
    logs = np.asarray(density(draws)) - proposed
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    exact = weights @ draws
    deviation = np.sqrt(weights @ (draws - exact) ** 2)
    np.testing.assert_array_less(np.abs(mode - exact), 4 * deviation / np.sqrt(worth) + 0.02 * deviation)
    np.testing.assert_allclose(values.std(axis=0), deviation, rtol=0.12)


@pytest.mark.parametrize("correlation", [0.0, 0.8])
def test_effective_sample_size_of_autoregressive_chains(correlation: float, rng: np.random.Generator) -> None:
    values = rng.standard_normal((4, 5000, 3))
    for i in range(1, 5000):
        values[:, i] += correlation * values[:, i - 1]
    worth = posterior.effective_sample_size(tnp.asarray(values))
    np.testing.assert_allclose(worth, np.full(3, 20_000 * (1 - correlation) / (1 + correlation)), rtol=0.2)
    apart = values + 5.0 * np.arange(4)[:, None, None]
    assert posterior.effective_sample_size(tnp.asarray(apart)).max() < 10


def test_a_gaussian_process_learns_what_scikit_learn_learns(rng: np.random.Generator) -> None:
    x = np.sort(rng.uniform(0, 10, 60))
    y = np.sin(x) * 1.5 + 0.2 * rng.standard_normal(60)
    start = gaussian_process.Hyperparameters(*map(tnp.asarray, (1.0, 2.0, 0.5)))
    ours, likelihood = gaussian_process.learn(start, x, y)
    kernel = ConstantKernel(1.0) * RBF(2.0) + WhiteKernel(0.25)
    theirs = GaussianProcessRegressor(kernel, alpha=0).fit(x[:, None], y)
    np.testing.assert_allclose(likelihood, theirs.log_marginal_likelihood_value_, rtol=1e-6)
    assert 0.15 < ours.noise < 0.25
    places = np.linspace(-1, 11, 30)
    mean, _ = theirs.predict(places[:, None], return_std=True)
    np.testing.assert_allclose(gaussian_process.predict(ours, x, y, places).mean, mean, atol=1e-3)
