"""tracer: a functional array compiler.

Pure Python functions of arrays are traced into a typed IR; `grad`, `vmap` and `jit` rewrite it; code generation emits
LLVM for the CPU. `tracer.numpy` has the functions to write them in, `tracer.lax` loops and branches.

>>> import tracer.numpy as tnp
>>> tracer.jit(tracer.grad(lambda x: tnp.sum(x**2)))(tnp.asarray([1.0, 2.0]))
Array([2., 4.], f64)
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from tracer import (
    ad_checkpoint,
    custom_derivatives,
    dtypes,
    errors,
    numpy,
    tree,
    tree_util,
    typing,
)
from tracer.absent import absent as _absent
from tracer.absent import install as _install_reasons
from tracer.interop.einops import install as _install_interop
from tracer.lazy import LazyModule as _LazyModule
from tracer.numpy.arrays.methods import install as _install
from tracer.primitives.elementwise.narrow_storage import widened as _widened
from tracer.runtime.eager.execute import execute as _execute
from tracer.runtime.eager.execute import prepared as _prepare
from tracer.runtime.jit.jit import JitFunction as _JitFunction
from tracer.runtime.jit.jit import block_until_ready, disable_jit, effects_barrier, jit
from tracer.runtime.jit.trace_call import eval_shape, make_program
from tracer.runtime.system.devices import (
    Device,
    default_backend,
    default_device,
    device_count,
    device_put,
    devices,
    local_device_count,
    local_devices,
    process_count,
    process_index,
)
from tracer.runtime.system.devices import others as _others
from tracer.runtime.system.devices import trace_named as _trace_named
from tracer.runtime.system.ignore_fp_warnings import quietly as _quietly
from tracer.runtime.system.meshes import PartitionSpec as P
from tracer.runtime.system.meshes import make_mesh, set_mesh
from tracer.runtime.system.shardings import NamedSharding, reshard, shard_map
from tracer.runtime.values.callbacks import io_callback, pure_callback
from tracer.runtime.values.checks import check
from tracer.runtime.values.copying import copied as _copied
from tracer.runtime.values.shape_dtype_struct import ShapeDtypeStruct
from tracer.runtime.values.transfer import device_get, typeof
from tracer.settings import config, default_matmul_precision, enable_x64
from tracer.trace.array import Array
from tracer.trace.compile_time_eval import ensure_compile_time_eval
from tracer.trace.trace import eager as _eager
from tracer.trace.tracebacks import remembering as _remembering
from tracer.trace.tracebacks import set_boundaries as _set_boundaries
from tracer.trace.tracebacks import set_method_boundaries as _set_method_boundaries
from tracer.transforms.checkpoint import checkpoint, remat
from tracer.transforms.custom.batching import custom_vmap as _custom_vmap
from tracer.transforms.custom.closures import closure_convert
from tracer.transforms.custom.derivatives import custom_jvp, custom_vjp
from tracer.transforms.custom.gradient import custom_gradient
from tracer.transforms.gradients import grad, value_and_grad
from tracer.transforms.jacobian_products import jvp, linear_transpose, linearize, vjp
from tracer.transforms.jacobians import hessian, hvp, jacfwd, jacrev
from tracer.transforms.naming import named_call, named_scope
from tracer.transforms.vectorize import vmap
from tracer.version import VERSION as _VERSION

if TYPE_CHECKING:
    from tracer import (
        custom_batching,
        data,
        debug,
        experimental,
        flatten_util,
        io,
        lax,
        logs,
        nn,
        ops,
        optim,
        random,
        scipy,
        sharding,
        test_util,
    )
    from tracer.explorer import explore
    from tracer.runtime.jit.checked import checked
    from tracer.runtime.profile.placement import where_to_run
    from tracer.runtime.profile.session import profile

__version__ = _VERSION

jacobian = jacrev
float0 = dtypes.float0
make_jaxpr = make_program
einsum, tensordot = numpy.einsum, numpy.tensordot  # where opt_einsum looks for them: in the root of the type's module
checkpoint_policies = ad_checkpoint.checkpoint_policies

# Only here do lower layers get functions of higher ones: execution outside traces, copies, devices, and the methods of
# Array. Libraries with a registry of array types get ours.
_eager.execute, _eager.prepare, _eager.quietly = _execute, _prepare, _quietly
_eager.widened, _eager.copied, _eager.trace_named = _widened, _copied, _trace_named
_others.module = _LazyModule("tracer.runtime.cuda.devices")
_install(Array)
_install_interop()
_install_reasons()

# Modules imported at their first use
_LATER = frozenset((
    "custom_batching", "data", "debug", "experimental", "flatten_util", "io", "lax", "logs", "nn", "ops", "optim",
    "random", "scipy", "sharding", "test_util",
))  # fmt: skip

# The explorer, which notebooks and pages of HTML need
_EXPLORER = frozenset(("Exploration", "explore", "load_ipython_extension"))

# Functions imported at their first use, with their modules
_FUNCTIONS = {"checked": "tracer.runtime.jit.checked", "profile": "tracer.runtime.profile.session",
              "where_to_run": "tracer.runtime.profile.placement"}  # fmt: skip

# Functions of sparse derivatives, which bring sparse arrays along
_SPARSE = frozenset(("hessian_sparsity", "jacobian_sparsity", "sparse_hessian", "sparse_jacobian"))


def __getattr__(name: str) -> object:
    if name in _LATER:
        return _import_module(f"tracer.{name}")
    if name in _FUNCTIONS:
        return getattr(_import_module(_FUNCTIONS[name]), name)
    if name in _SPARSE:
        return getattr(_import_module("tracer.experimental.sparse"), name)
    if name in _EXPLORER:
        return getattr(_import_module("tracer.explorer"), name)
    raise _absent("tracer", name)


__all__ = [
    "Array", "Device", "NamedSharding", "P", "ShapeDtypeStruct", "ad_checkpoint", "block_until_ready", "check",
    "checked", "checkpoint", "checkpoint_policies", "closure_convert", "config", "custom_batching",
    "custom_derivatives", "custom_gradient", "custom_jvp", "custom_vjp", "data", "debug", "default_backend",
    "default_device", "default_matmul_precision", "device_count", "device_get", "device_put", "devices", "disable_jit",
    "dtypes", "effects_barrier", "enable_x64", "ensure_compile_time_eval", "errors", "eval_shape", "experimental",
    "explore", "flatten_util", "float0", "grad", "hessian", "hessian_sparsity", "hvp", "io", "io_callback", "jacfwd",
    "jacobian", "jacobian_sparsity", "jacrev", "jit", "jvp", "lax", "linear_transpose", "linearize",
    "local_device_count", "local_devices", "logs", "make_jaxpr", "make_mesh", "make_program", "named_call",
    "named_scope", "nn", "numpy", "ops", "optim", "process_count", "process_index", "profile", "pure_callback",
    "random", "remat", "reshard", "scipy", "set_mesh", "shard_map", "sharding", "sparse_hessian", "sparse_jacobian",
    "test_util", "tree", "tree_util", "typeof", "typing", "value_and_grad", "vjp", "vmap",
    "where_to_run",
]  # fmt: skip

_set_boundaries(globals(), __all__)
for _name in ("checkpoint", "grad", "hessian", "jacfwd", "jacrev", "named_call", "value_and_grad", "vmap"):
    globals()[_name] = _remembering(globals()[_name])
globals().update(jacobian=jacrev, remat=checkpoint)  # other names of the same functions
for _class in (custom_jvp, custom_vjp, _custom_vmap, _JitFunction):
    _set_method_boundaries(_class)
_set_method_boundaries(type(config), ("__setattr__",))
