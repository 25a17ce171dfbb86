"""JAX's public names that tracer lacks, by module, with the reason that an AttributeError gives.

`tracer.numpy` has a table of its own, which includes NumPy's names. docs/jax.md shows both.
"""

from __future__ import annotations

_DEVICES = "for arrays spread over many devices or processes; each array lies on one device, tracer.devices()"
_SETTINGS = "a setting of XLA, or of JAX's own checks; tracer.config has ours"
_INSIDE = "internal to JAX"
_XLA = "an interface to XLA's compiler or runtime"
_TYPES = "a name for annotations and settings of XLA, which nothing accepts here"
_REFS = "arrays are values: x[i] = v rebinds the name to a new value, in traced functions, too"
_FACTORS = "not yet: linear algebra by eigenvalues and orthogonal factors"
_TRANSFORMS = "not yet: Fourier transforms in compiled code"
_SPECIAL = "not yet: this function"
_NANS = "no operation is watched while it runs; tracer.check(tnp.isfinite(x).all(), text) faults where it stands"
_SHARED = "for arrays spread over devices"

ABSENT: dict[str, dict[str, str]] = {
    "tracer": {
        **dict.fromkeys(
            ("NamedSharding", "P", "Shard", "copy_to_host_async", "host_count", "host_id", "host_ids",
             "make_array_from_callback", "make_array_from_process_local_data", "make_array_from_single_device_arrays",
             "make_mesh", "process_indices", "reshard", "set_mesh", "memory", "remove_size_one_mesh_axis_from_type",
             "auto_pcast", "distributed"), _DEVICES,
        ),
        **dict.fromkeys(
            ("pmap", "shard_map", "smap"), f"{_DEVICES}; vmap(axis_name=...) has the collectives of tracer.lax",
        ),
        **dict.fromkeys(
            ("allow_f16_reductions", "array_garbage_collection_guard", "check_tracer_leaks", "checking_leaks",
             "debug_key_reuse", "default_prng_impl", "enable_checks", "enable_custom_prng",
             "jax2tf_associative_scan_reductions", "legacy_prng_key", "no_execution", "no_tracing",
             "numpy_dtype_promotion", "numpy_rank_promotion", "softmax_custom_jvp", "thread_guard",
             "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
             "transfer_guard_device_to_host", "transfer_guard_host_to_device"), _SETTINGS,
        ),
        **dict.fromkeys(("debug_nans", "debug_infs"), _NANS),
        **dict.fromkeys(("log_compiles", "explain_cache_misses"), "f.explain() says when jit of f compiled, and why"),
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
        "example_libraries": "optimizers and layers are libraries of their own: a step is a function of grad's result",
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
        "ode": "not yet: scan or while_loop of a step; scipy.integrate.solve_ivp takes jitted functions",
        "pallas": "kernels are made by the compiler; f.lower(x).loops() shows them",
        "pjit": _DEVICES,
        "shard_map": _DEVICES,
        "sparse": "not yet: arrays are dense",
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
        **dict.fromkeys(("pcast", "precv", "psend", "ragged_all_to_all", "with_sharding_constraint"), _SHARED),
        **dict.fromkeys(("after_all", "composite", "create_token", "dce_sink", "stage"), _XLA),
        "bessel_i0e": "tracer.scipy.special.i0e",
        "bessel_i1e": "tracer.scipy.special.i1e",
        "betainc": "tracer.scipy.special.betainc",
        "zeta": "tracer.scipy.special.zeta",
        **dict.fromkeys(
            ("RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general"), "not yet: products by groups"
        ),
        "FftType": "not yet: Fourier transforms",
        "conv_general_permutations": "conv_dimension_numbers gives the axes",
        "conv_transpose_shape_tuple": "conv_transpose(...).shape under eval_shape says it",
        "fft": "not yet: Fourier transforms",
        "rng_bit_generator": "its stream is the device's own; tracer.random.bits gives the same bits everywhere",
        "rng_uniform": "it has no key; tracer.random.uniform has one",
        "scaled_dot": "not yet: products of block-scaled short floats",
        "scatter_apply": "not yet: gather, apply and scatter say the same where indices are unique",
    },
    "tracer.lax.linalg": {
        **dict.fromkeys(("EigImplementation", "EighImplementation", "SvdAlgorithm"), _TYPES),
        **dict.fromkeys(
            ("eig", "eigh", "hessenberg", "householder_product", "ormqr", "qdwh", "qr", "schur", "svd", "tridiagonal",
             "tridiagonal_solve"), _FACTORS,
        ),
        "cholesky_update": "not yet: cholesky of the updated matrix",
        "symmetric_product": "alpha * a @ a.mT + beta * c",
    },
    "tracer.nn": {
        **dict.fromkeys(
            ("get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"),
            "not yet: products of block-scaled short floats",
        ),
    },
    "tracer.nn.initializers": {
        **dict.fromkeys(("delta_orthogonal", "orthogonal"), _FACTORS),
    },
    "tracer.random": {
        "key_dtype": "key.dtype; issubdtype(key.dtype, tracer.dtypes.prng_key) tells keys from words",
        "orthogonal": _FACTORS,
    },
    "tracer.scipy": {
        "cluster": "not yet: centres are where of distances; scikit-learn takes arrays",
        "fft": _TRANSFORMS,
        "interpolate": "not yet: tracer.numpy.interp interpolates on a line, ndimage.map_coordinates on a grid",
        "optimize": "scipy.optimize.minimize(jit(f), x0, jac=jit(grad(f))) takes our functions",
        "spatial": "not yet: rotations are 3x3 matrices, and @ turns by them",
    },
    "tracer.scipy.integrate": {
        "solve_ivp": "SciPy's takes jitted functions: scipy.integrate.solve_ivp(jit(f), ..., jac=jit(jacfwd(f)))",
    },
    "tracer.scipy.linalg": {
        **dict.fromkeys(
            ("eigh", "eigh_tridiagonal", "expm_frechet", "funm", "hessenberg", "polar", "qr", "qr_multiply", "rsf2csf",
             "schur", "solve_sylvester", "sqrtm", "svd"), _FACTORS,
        ),
        **dict.fromkeys(
            ("circulant", "companion", "convolution_matrix", "dft", "fiedler", "fiedler_companion", "hadamard",
             "hankel", "helmert", "hilbert", "invhilbert", "invpascal", "leslie", "pascal"),
            "scipy.linalg makes it of known values, as an ndarray, which arrays take",
        ),
    },
    "tracer.scipy.signal": dict.fromkeys(("csd", "istft", "stft", "welch"), _TRANSFORMS),
    "tracer.scipy.special": {
        "bessel_jn": f"{_SPECIAL}; of order 0 it is a mean of cos(x sin t), which a sum over t gives",
        "hyp1f1": f"{_SPECIAL}; gammainc is one, as are erf and dawsn",
        "hyp2f1": f"{_SPECIAL}; betainc is one",
        "loggamma": f"{_SPECIAL} of complex numbers; gammaln is that of real ones, gammasgn has the sign",
        "owens_t": f"{_SPECIAL}; it is an integral of exp over a rational function, from 0 to a",
        "sph_harm_y": f"{_SPECIAL}; scipy.special.sph_harm_y of known values is an ndarray, which arrays take",
        "wofz": f"{_SPECIAL} of complex numbers; erfcx and dawsn are its values on the axes",
    },
    "tracer.sharding": dict.fromkeys(
        ("AbstractDevice", "AbstractMesh", "AxisType", "ManualAxisType", "Mesh", "NamedSharding", "PartitionSpec",
         "PositionalSharding", "Sharding", "auto_axes", "explicit_axes", "get_abstract_mesh", "get_mesh",
         "make_single_device_sharding", "reshard", "set_mesh", "use_abstract_mesh"), _DEVICES,
    ),
    "tracer.tree_util": dict.fromkeys(
        ("KeyEntry", "default_registry", "flatten_one_level", "flatten_one_level_with_keys", "is_tree_node"), _INSIDE,
    ),
}  # fmt: skip

# SciPy's names that JAX lacks, too
SCIPYS: dict[str, dict[str, str]] = {
    "tracer.scipy.sparse": {
        **dict.fromkeys(
            ("bsr_array", "bsr_matrix", "coo_array", "coo_matrix", "csc_array", "csc_matrix", "csr_array", "csr_matrix",
             "dia_array", "dia_matrix", "diags", "diags_array", "dok_array", "eye_array", "lil_array", "random_array"),
            "arrays are dense: a product of few elements is x[columns] * values added up by ops.segment_sum; "
            "sparse.linalg takes such a function for a matrix",
        ),
    },
    "tracer.scipy.sparse.linalg": {
        **dict.fromkeys(("spsolve", "splu", "factorized"), "tracer.scipy.linalg.solve, or gmres of a function"),
        **dict.fromkeys(("eigs", "eigsh", "lobpcg", "svds"), _FACTORS),
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
    why = ABSENT.get(module, {}).get(name) or SCIPYS.get(module, {}).get(name)
    if module.startswith("tracer.scipy.stats.") and name == "rvs":
        sampler = _DRAWS.get(module.rpartition(".")[2])
        how = f"tracer.random.{sampler}(key, ...)" if sampler else "tracer.random has some; derive others from uniform"
        why = f"draws take a key: {how}"
    return AttributeError(f"module {module!r} has no attribute {name!r}{f' ({why})' if why else ''}")
