"""scikit-learn with array_api_dispatch: its own check of estimators, and functions that compute on our arrays."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.foreign.outcomes import MODES, OURS, PLAIN, REFUSED, WRONG, Case, check, kind_of, record
from tests.foreign.requirements import DISPATCHES, NOT_DISPATCHING, how_to_get
from tests.grids import covering

if not DISPATCHES:
    pytest.skip(NOT_DISPATCHING, allow_module_level=True)
sklearn = pytest.importorskip("sklearn", reason=how_to_get("sklearn"))

from sklearn import metrics, model_selection, preprocessing  # noqa: E402
from sklearn.metrics import pairwise  # noqa: E402
from sklearn.utils import get_tags  # noqa: E402
from sklearn.utils.discovery import all_estimators  # noqa: E402
from sklearn.utils.estimator_checks import check_array_api_input_and_values  # noqa: E402

LIBRARY = "scikit-learn"


def dispatches(cls: Any) -> bool:
    try:
        return bool(get_tags(cls()).array_api_support)
    except (AttributeError, TypeError):  # another estimator is wanted first
        return False


with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of classes that scikit-learn will drop
    CLASSES = {name: cls for name, cls in all_estimators() if dispatches(cls)}


OPTIONS = {"PCA": {"n_components": 2, "svd_solver": "full"}}  # its last components are noise, which no check survives


@pytest.mark.parametrize(("name", "dtype"), covering(sorted(set(CLASSES) - {"LabelEncoder"}), ["float64", "float32"]))
def test_estimators_pass_their_own_check(name: str, dtype: str) -> None:
    estimator = CLASSES[name](**OPTIONS.get(name, {}))
    check_array_api_input_and_values(name, estimator, "tracer.numpy", dtype_name=dtype)
    record(LIBRARY, f"{name} (its own check)", "eager", OURS)


RNG = np.random.default_rng(0)
TRUE = RNG.uniform(1.0, 2.0, 20)
GUESS = TRUE + RNG.normal(size=20) * 0.1
LABELS = RNG.integers(0, 3, 20)
FOUND = np.where(RNG.random(20) < 0.7, LABELS, RNG.integers(0, 3, 20))
BINARY = (LABELS > 0).astype(int)
SCORES = RNG.random(20)
X, Y, P = RNG.normal(size=(8, 3)), RNG.normal(size=(5, 3)), RNG.uniform(0.5, 1.5, (8, 3))


def _scores(names: str, *operands: Any, **options: Any) -> list[Case]:
    return [
        Case(
            f"metrics.{name}",
            lambda *xs, name=name: getattr(metrics, name)(*xs, **options),
            operands,
            PLAIN,
            REFUSED,
            None,
        )
        for name in names.split()
    ]


def _curves(names: str, *operands: Any) -> list[Case]:
    return [
        Case(f"metrics.{name}", lambda *xs, name=name: getattr(metrics, name)(*xs), operands, OURS, REFUSED, None)
        for name in names.split()
    ]


def _kernels(names: str, *operands: Any) -> list[Case]:
    return [
        Case(f"metrics.pairwise.{name}", lambda *xs, name=name: getattr(pairwise, name)(*xs), operands, OURS, REFUSED)
        for name in names.split()
    ]


def _scalers() -> list[Case]:
    made = {
        "StandardScaler": X,
        "MinMaxScaler": X,
        "MaxAbsScaler": X,
        "Normalizer": X,
        "KernelCenterer": X @ X.T,
        "PolynomialFeatures": X,
    }
    return [
        Case(
            f"preprocessing.{name}",
            lambda x, name=name: getattr(preprocessing, name)().fit_transform(x),
            (given,),
            OURS,
            REFUSED,
            WRONG if name == "StandardScaler" else OURS,  # it overwrites 0 / 0
        )
        for name, given in made.items()
    ]


CASES = [
    *_scores(
        "mean_absolute_error mean_squared_error root_mean_squared_error r2_score explained_variance_score max_error "
        "median_absolute_error mean_absolute_percentage_error mean_squared_log_error root_mean_squared_log_error "
        "mean_tweedie_deviance mean_poisson_deviance mean_gamma_deviance d2_tweedie_score mean_pinball_loss "
        "d2_absolute_error_score d2_pinball_score",
        TRUE,
        GUESS,
    ),
    *_scores(
        "accuracy_score zero_one_loss balanced_accuracy_score cohen_kappa_score matthews_corrcoef hamming_loss",
        LABELS,
        FOUND,
    ),
    *_scores("f1_score precision_score recall_score jaccard_score", LABELS, FOUND, average="macro"),
    *_scores("fbeta_score", LABELS, FOUND, average="macro", beta=0.5),
    *_scores(
        "roc_auc_score average_precision_score brier_score_loss log_loss d2_brier_score d2_log_loss_score",
        BINARY,
        SCORES,
    ),
    *_curves("confusion_matrix multilabel_confusion_matrix", LABELS, FOUND),
    *_curves("roc_curve precision_recall_curve det_curve", BINARY, SCORES),
    *_kernels(
        "cosine_similarity cosine_distances euclidean_distances linear_kernel rbf_kernel polynomial_kernel "
        "sigmoid_kernel laplacian_kernel manhattan_distances",
        X,
        Y,
    ),
    *_kernels("paired_euclidean_distances paired_cosine_distances paired_manhattan_distances", X, X[::-1].copy()),
    *_kernels("chi2_kernel additive_chi2_kernel", P, P[:5]),
    *_scalers(),
    *[
        Case(f"preprocessing.{name}", lambda x, name=name: getattr(preprocessing, name)(x), (X,), OURS, REFUSED)
        for name in ("normalize", "minmax_scale", "maxabs_scale")
    ],
    Case("preprocessing.Binarizer", lambda x: preprocessing.Binarizer().fit_transform(x), (X,), OURS, REFUSED, None),
    Case("preprocessing.binarize", lambda x: preprocessing.binarize(x, threshold=0.5), (X,), OURS, REFUSED, None),
    Case(
        "preprocessing.LabelEncoder",
        lambda y: preprocessing.LabelEncoder().fit_transform(y),
        (LABELS,),
        OURS,
        REFUSED,
        None,
    ),
    Case(
        "preprocessing.LabelBinarizer",
        lambda y: preprocessing.LabelBinarizer().fit_transform(y),
        (LABELS,),
        OURS,
        REFUSED,
        None,
    ),
    Case("model_selection.train_test_split", lambda x: model_selection.train_test_split(x, random_state=0), (X,)),
]
RUNS = [(case, mode) for case in CASES for mode in MODES if case.expected(mode) is not None]


@pytest.mark.parametrize(("case", "mode"), RUNS, ids=[f"{case.function} {mode}" for case, mode in RUNS])
def test_functions(case: Case, mode: str) -> None:
    with sklearn.config_context(array_api_dispatch=True):
        check(LIBRARY, case, mode)


def test_a_pipeline_stays_ours() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    x, y = np.concatenate([X, X + 1.5]), np.repeat([0, 1], 8)
    model = make_pipeline(preprocessing.StandardScaler(), LogisticRegression())
    expected = model.fit(x, y).predict_proba(x)
    with sklearn.config_context(array_api_dispatch=True):
        found = model.fit(tnp.asarray(x), tnp.asarray(y)).predict_proba(tnp.asarray(x))
    assert isinstance(found, tracer.Array)
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    record(LIBRARY, "pipeline.make_pipeline", "eager", kind_of(found))


def test_principal_components_stay_ours() -> None:
    from sklearn.decomposition import PCA

    with sklearn.config_context(array_api_dispatch=True):
        found = PCA(2, svd_solver="full").fit_transform(tnp.asarray(X))
    assert isinstance(found, tracer.Array)
    np.testing.assert_allclose(found, PCA(2, svd_solver="full").fit_transform(X), atol=1e-12)
