"""Sparse arrays as in `jax.experimental.sparse`, and sparse derivatives."""

from tracer.absent import absent
from tracer.experimental.sparse.base import JAXSparse, todense
from tracer.experimental.sparse.bcoo import BCOO, bcoo_fromdense, bcoo_todense
from tracer.experimental.sparse.creation import empty, eye, random_bcoo
from tracer.experimental.sparse.derivatives import grad, jacfwd, jacobian, jacrev, value_and_grad
from tracer.experimental.sparse.elementwise import bcoo_extract, bcoo_multiply_dense, bcoo_multiply_sparse
from tracer.experimental.sparse.matrices import (
    COO,
    CSC,
    CSR,
    coo_fromdense,
    coo_matmat,
    coo_matvec,
    coo_todense,
    csr_fromdense,
    csr_matmat,
    csr_matvec,
    csr_todense,
)
from tracer.experimental.sparse.parts import bcoo_dynamic_slice, bcoo_reduce_sum, bcoo_slice, bcoo_squeeze
from tracer.experimental.sparse.patterns import (
    hessian_sparsity,
    jacobian_sparsity,
    sparse_hessian,
    sparse_jacobian,
)
from tracer.experimental.sparse.products import bcoo_dot_general, bcoo_dot_general_sampled
from tracer.experimental.sparse.rearranging import (
    bcoo_concatenate,
    bcoo_reshape,
    bcoo_rev,
    bcoo_sort_indices,
    bcoo_sum_duplicates,
    bcoo_transpose,
    bcoo_update_layout,
)
from tracer.trace.tracebacks import set_boundaries, set_method_boundaries

__all__ = [
    "BCOO", "COO", "CSC", "CSR", "JAXSparse", "bcoo_concatenate", "bcoo_dot_general", "bcoo_dot_general_sampled",
    "bcoo_dynamic_slice", "bcoo_extract", "bcoo_fromdense", "bcoo_multiply_dense", "bcoo_multiply_sparse",
    "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice", "bcoo_sort_indices", "bcoo_squeeze",
    "bcoo_sum_duplicates", "bcoo_todense", "bcoo_transpose", "bcoo_update_layout", "coo_fromdense", "coo_matmat",
    "coo_matvec", "coo_todense", "csr_fromdense", "csr_matmat", "csr_matvec", "csr_todense", "empty", "eye",
    "grad", "hessian_sparsity", "jacfwd", "jacobian", "jacobian_sparsity", "jacrev", "random_bcoo", "sparse_hessian",
    "sparse_jacobian", "todense", "value_and_grad",
]  # fmt: skip


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return list(__all__)


_SPECIAL = (
    "__init__", "__array__", "__getitem__", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__",
    "__truediv__", "__matmul__", "__rmatmul__",
)  # fmt: skip
set_boundaries(globals(), __all__)
for _class in dict.fromkeys(base for public in (BCOO, COO, CSR, CSC) for base in public.__mro__[:-1]):
    set_method_boundaries(_class, _SPECIAL)
