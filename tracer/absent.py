"""JAX's public names that tracer lacks, by module, with the reason that an AttributeError gives.

`tracer.numpy` has a table of its own, which includes NumPy's names. docs/jax.md shows both.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import ModuleType

from tracer import torch_names

_DEVICES = "for arrays spread over many devices or processes; each array lies on one device, tracer.devices()"
_SETTINGS = "a setting of XLA, or of JAX's own checks; tracer.config has ours"
_INSIDE = "internal to JAX"
_XLA = "an interface to XLA's compiler or runtime"
_TYPES = "a name for annotations and settings of XLA, which nothing accepts here"
_REFS = "arrays are values: x[i] = v rebinds the name to a new value, in traced functions, too"
_SHARED = "for arrays spread over devices"

ABSENT: dict[str, dict[str, str]] = {
    "tracer": {
        **dict.fromkeys(
            ("Shard", "copy_to_host_async", "host_count", "host_id", "host_ids",
             "make_array_from_callback", "make_array_from_process_local_data", "make_array_from_single_device_arrays",
             "process_indices", "memory", "remove_size_one_mesh_axis_from_type",
             "auto_pcast", "distributed"), _DEVICES,
        ),
        **dict.fromkeys(
            ("pmap", "smap"), f"{_DEVICES}; vmap(axis_name=...) has the collectives of tracer.lax",
        ),
        **dict.fromkeys(
            ("allow_f16_reductions", "array_garbage_collection_guard", "check_tracer_leaks", "checking_leaks",
             "debug_key_reuse", "default_prng_impl", "enable_checks", "enable_custom_prng",
             "jax2tf_associative_scan_reductions", "legacy_prng_key", "no_execution", "no_tracing",
             "numpy_dtype_promotion", "numpy_rank_promotion", "softmax_custom_jvp", "thread_guard",
             "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
             "transfer_guard_device_to_host", "transfer_guard_host_to_device"), _SETTINGS,
        ),
        **dict.fromkeys(("debug_nans", "debug_infs"), "tracer.config has them, and tracer.checked(f) holds for a call"),
        "log_compiles": "with tracer.config.using(log_compiles=True): ...; f.explain() says when and why f compiled",
        "explain_cache_misses": "f.explain() says when jit of f compiled, and why",
        **dict.fromkeys(
            ("ad", "api_util", "core", "extend", "ffi", "interpreters", "lib", "make_user_context", "monitoring",
             "print_environment_info", "stages"), _INSIDE,
        ),
        **dict.fromkeys(("Ref", "empty_ref", "free_ref", "freeze", "new_ref", "ref"), _REFS),
        "clear_caches": "f.clear_cache() forgets what jit of f compiled",
        "cloud_tpu_init": _INSIDE,
        "collect_profile": _INSIDE,
        "dlpack": "tracer.numpy.from_dlpack and np.from_dlpack(x) take each other's arrays",
        "ds": "a slice of Pallas kernels",
        "example_libraries": "tracer.optim has optimizers, with Optax's names",
        "export": "not yet: programs that leave the process",
        "fwd_and_bwd": "vjp gives both halves",
        "image": "not yet: scipy.ndimage.map_coordinates reads between pixels",
        "live_arrays": "Python's gc.get_objects() has them; f.lower(x).memory() tells what a program takes",
        "profiler": "f.lower(x).cost() and f.lower(x).memory() tell what a program takes",
        "tools": _INSIDE,
        "tree_leaves": "JAX has removed it; use tracer.tree.leaves",
        "tree_map": "JAX has removed it; use tracer.tree.map",
        "tree_multimap": "JAX has removed it; use tracer.tree.map",
        "xla": _INSIDE,
    },
    "tracer.ad_checkpoint": dict.fromkeys(("Offloadable", "Recompute", "Saveable"), _INSIDE),
    "tracer.checkpoint_policies": dict.fromkeys(
        ("offload_dot_with_no_batch_dims", "save_and_offload_only_these_names"), _DEVICES
    ),
    "tracer.custom_derivatives": {
        "custom_vjp_primal_tree_values": _INSIDE,
        "linear_call": "not yet: custom_vjp of a linear function says the same",
    },
    "tracer.debug": {
        **dict.fromkeys(("DebugEffect", "OrderedDebugEffect"), _INSIDE),
        **dict.fromkeys(("inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"), _DEVICES),
        "log": "debug.callback(logging.info, ...) logs",
    },
    "tracer.experimental": {
        **dict.fromkeys(("EArray", "cur_qdd", "primal_tangent_dtype"), _INSIDE),
        "checkify": "tracer.check(condition, text) raises CheckError from compiled code, at its line; indices out of "
        "bounds raise by themselves: there is no error value to pass along and throw",
        "jet": "not yet: jvp of jvp gives higher derivatives",
        "maps": _SHARED,
        "mesh_utils": _DEVICES,
        "multihost_utils": _DEVICES,
        "pallas": "kernels are made by the compiler; f.lower(x).loops() shows them",
        "pjit": _DEVICES,
        "shard_map": _DEVICES,
    },
    "tracer.experimental.sparse": {
        **dict.fromkeys(
            ("BCSR", "bcsr_broadcast_in_dim", "bcsr_concatenate", "bcsr_dot_general", "bcsr_extract", "bcsr_fromdense",
             "bcsr_sum_duplicates", "bcsr_todense"), "BCOO has batch axes, CSR compressed rows",
        ),
        **dict.fromkeys(
            ("CuSparseEfficiencyWarning", "SparseEfficiencyError", "SparseEfficiencyWarning", "SparseTracer"), _INSIDE
        ),
        "bcoo_broadcast_in_dim": "a product with a dense array broadcasts that; repeated entries are dense in an axis",
        "bcoo_conv_general_dilated": "a convolution of few elements is a product with a sparse matrix",
        "bcoo_gather": "m[i], bcoo_slice and bcoo_dynamic_slice take boxes; a product with a selecting matrix the rest",
        "linalg": "tracer.scipy.sparse.linalg has cg, bicgstab and gmres, which take m; SciPy's spsolve m.to_scipy()",
        "sparsify": "functions of dense arrays stay dense; write m @ x, m * x and m.sum(), or bcoo_dot_general",
    },
    "tracer.dtypes": {
        "TypePromotionError": "dtypes that do not join raise tracer.errors.DTypeError",
        "itemsize_bits": "8 * dtype.itemsize; tracer.numpy.finfo and iinfo have bits",
    },
    "tracer.errors": {
        "ConcretizationTypeError": "TracedValueError",
        "InconclusiveDimensionOperation": "shapes are known while tracing",
        "JAXIndexError": "IndexingError",
        "JAXTypeError": "DTypeError, ArgumentError",
        "JaxRuntimeError": "what fails in compiled code raises CheckError or OutOfBoundsError, at its line",
        "JaxprTypeError": "InternalError",
        "KeyReuseError": "keys are not watched: split them",
        "NonConcreteBooleanIndexError": "TracerArrayError",
        "TracerArrayConversionError": "TracerArrayError",
        "TracerBoolConversionError": "TracerBoolError",
        "TracerIntegerConversionError": "TracerIntegerError",
        "UnexpectedTracerError": "LeakedTracerError",
    },
    "tracer.lax": {
        **dict.fromkeys(
            ("AccuracyMode", "Tolerance", "ConvGeneralDilatedDimensionNumbers", "DotAlgorithm", "DotAlgorithmPreset",
             "DotDimensionNumbers", "PrecisionLike", "RandomAlgorithm"), _TYPES,
        ),
        **dict.fromkeys(("pcast", "precv", "psend", "ragged_all_to_all"), _SHARED),
        **dict.fromkeys(("after_all", "composite", "create_token", "dce_sink", "stage"), _XLA),
        **dict.fromkeys(
            ("RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general"), "not yet: products by groups"
        ),
        "conv_general_permutations": "conv_dimension_numbers gives the axes",
        "conv_transpose_shape_tuple": "conv_transpose(...).shape under eval_shape says it",
        "rng_bit_generator": "its stream is the device's own; tracer.random.bits gives the same bits everywhere",
        "rng_uniform": "it has no key; tracer.random.uniform has one",
        "scaled_dot": "not yet: products of block-scaled short floats",
        "scatter_apply": "not yet: gather, apply and scatter say the same where indices are unique",
    },
    "tracer.lax.linalg": {
        **dict.fromkeys(("EigImplementation", "EighImplementation", "SvdAlgorithm"), _TYPES),
    },
    "tracer.nn": {
        **dict.fromkeys(
            ("get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"),
            "not yet: products of block-scaled short floats",
        ),
    },
    "tracer.random": {
        "key_dtype": "key.dtype; issubdtype(key.dtype, tracer.dtypes.prng_key) tells keys from words",
    },
    "tracer.scipy": {
        "spatial": "not yet: rotations are 3x3 matrices, and @ turns by them",
    },
    "tracer.sharding": {
        "ManualAxisType": _INSIDE,
        "PositionalSharding": "JAX has removed it; NamedSharding of a mesh",
    },
    "tracer.tree_util": dict.fromkeys(
        ("KeyEntry", "default_registry", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node"), _INSIDE,
    ),
}  # fmt: skip

# SciPy's names that JAX lacks, too
SCIPYS: dict[str, dict[str, str]] = {
    "tracer.scipy.integrate": {
        **dict.fromkeys(("BDF", "LSODA"), 'solve_ivp has method="Radau" for stiff problems'),
        **dict.fromkeys(("DOP853", "RK23", "RK45", "Radau"), "solve_ivp has it as a method"),
        **dict.fromkeys(("cubature", "dblquad", "nquad", "tplquad"), "quad of a function that calls quad"),
        **dict.fromkeys(("fixed_quad", "quad_vec", "romb", "tanhsinh"), "quad, or simpson of samples"),
        "cumulative_simpson": "cumulative_trapezoid",
        "odeint": "tracer.experimental.ode.odeint, or solve_ivp",
        "solve_bvp": "root of the equations at all points",
    },
    "tracer.scipy.optimize": {
        **dict.fromkeys(
            ("basinhopping", "brute", "differential_evolution", "direct", "dual_annealing", "shgo"),
            "a local search from many starts: vmap(lambda x0: minimize(f, x0).x)(starts)",
        ),
        **dict.fromkeys(("linprog", "milp", "linear_sum_assignment", "quadratic_assignment"), "SciPy's takes arrays"),
        **dict.fromkeys(("bisect", "brentq", "newton"), "root_scalar has it as a method"),
        **dict.fromkeys(("brenth", "ridder", "toms748"), "root_scalar has brentq"),
        **dict.fromkeys(("brent", "fminbound", "golden"), "minimize_scalar"),
        **dict.fromkeys(("fmin_bfgs", "fmin_l_bfgs_b", "fmin_ncg"), "minimize has it as a method"),
        **dict.fromkeys(("fmin", "fmin_cg", "fmin_cobyla", "fmin_powell", "fmin_slsqp", "fmin_tnc"), "minimize"),
        **dict.fromkeys(("LinearConstraint", "NonlinearConstraint"), "constraints are bounds, or penalties in fun"),
        "Bounds": "minimize takes pairs, and SciPy's Bounds",
        "OptimizeResult": "OptimizeResults",
        "fsolve": "root",
        "leastsq": "least_squares",
        "lsq_linear": "tracer.numpy.linalg.lstsq; minimize takes bounds",
        "nnls": "minimize(lambda x: ((a @ x - b) ** 2).sum(), x0, bounds=[(0, None)] * n)",
    },
    "tracer.scipy.sparse": {
        **dict.fromkeys(
            ("bsr_array", "bsr_matrix", "coo_array", "coo_matrix", "csc_array", "csc_matrix", "csr_array", "csr_matrix",
             "dia_array", "dia_matrix", "diags", "diags_array", "dok_array", "eye_array", "lil_array", "random_array"),
            "tracer.experimental.sparse has BCOO, COO, CSR and CSC; from_scipy_sparse and to_scipy convert",
        ),
    },
    "tracer.scipy.sparse.linalg": {
        **dict.fromkeys(("spsolve", "splu", "factorized"), "tracer.scipy.linalg.solve, or gmres of a function"),
        **dict.fromkeys(("eigs", "eigsh", "lobpcg", "svds"), "scipy.linalg.eigh and svd take dense matrices"),
        **dict.fromkeys(("gcrotmk", "lgmres", "qmr", "tfqmr", "bicg", "cgs"), "gmres and bicgstab take any matrix"),
        **dict.fromkeys(("lsmr", "lsqr"), "cg of the normal equations: lambda v: a.T @ (a @ v), with a.T @ b"),
        "LinearOperator": "a function from vectors to vectors is one",
        "minres": "gmres takes indefinite matrices, cg positive definite ones",
    },
    "tracer.scipy.stats": dict.fromkeys(
        ("weibull_min", "weibull_max", "lognorm", "rayleigh", "invgamma", "halfnorm", "f", "skewnorm", "triang",
         "maxwell", "hypergeom", "randint", "boltzmann", "zipf", "dlaplace"),
        "not yet: this distribution; its logpdf is a line with tracer.numpy, and tracer.random may have its draws",
    ),
}  # fmt: skip

_DRAWS = {
    "bernoulli": "bernoulli", "beta": "beta", "binom": "binomial", "cauchy": "cauchy", "chi2": "chisquare",
    "dirichlet": "dirichlet", "expon": "exponential", "gamma": "gamma", "gennorm": "generalized_normal",
    "geom": "geometric", "gumbel_r": "gumbel", "laplace": "laplace", "logistic": "logistic",
    "multinomial": "multinomial", "multivariate_normal": "multivariate_normal", "norm": "normal", "pareto": "pareto",
    "poisson": "poisson", "t": "t", "truncnorm": "truncated_normal", "uniform": "uniform",
}  # fmt: skip


def absent(module: str, name: str) -> AttributeError:
    """Return the error for a missing name of a module, with the reason if JAX has the name.

    >>> print(absent("tracer", "new_ref"))  # doctest: +ELLIPSIS
    module 'tracer' has no attribute 'new_ref' (arrays are values: ...)
    """
    tables = (ABSENT, SCIPYS, torch_names.NAMES)
    why = next((table[module][name] for table in tables if name in table.get(module, {})), None)
    if module.startswith("tracer.scipy.stats.") and name == "rvs":
        sampler = _DRAWS.get(module.rpartition(".")[2])
        how = f"tracer.random.{sampler}(key, ...)" if sampler else "tracer.random has some; derive others from uniform"
        why = f"draws take a key: {how}"
    return AttributeError(f"module {module!r} has no attribute {name!r}{f' ({why})' if why else ''}")


class Reasons:
    """Finder of missing submodules: `import tracer.scipy.spatial` fails with the reason of the attribute."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> None:
        """Raise ModuleNotFoundError for a missing name of this package that has a reason. Other names are not found."""
        parent, _, last = name.rpartition(".")
        module = sys.modules.get(parent) if parent.partition(".")[0] == "tracer" else None
        if module is None or path is None or last.startswith("_"):
            return
        try:
            getattr(module, last)
        except AttributeError as error:
            _, _, reason = str(error).partition(" (")
            if reason:
                raise ModuleNotFoundError(f"No module named {name!r} ({reason}") from None


def install() -> None:
    """Let imports of missing submodules fail with their reasons, after all other finders."""
    if Reasons not in sys.meta_path:
        sys.meta_path.append(Reasons)
