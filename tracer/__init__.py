"""tracer: a functional array compiler.

Functions on arrays are traced into programs, transformed (`grad`, `vmap`, `jit` and their kin) and compiled.

    tracer.numpy     NumPy's functions            tracer.random    keyed random numbers
    tracer.lax       control flow, primitives     tracer.nn        activations and their like
    tracer.tree      trees of arrays              tracer.scipy     special functions, statistics

This module wires the package together, once: Array gets its operators and methods, and eager operations their executor.
"""

from __future__ import annotations

from tracer import numpy as numpy
from tracer.errors import TracerError as TracerError
from tracer.numpy import methods as _methods
from tracer.runtime import eager as _eager
from tracer.runtime.abstract import ShapeDtypeStruct as ShapeDtypeStruct
from tracer.runtime.devices import default_device as default_device
from tracer.runtime.devices import device_put as device_put
from tracer.runtime.devices import devices as devices
from tracer.runtime.jit import JitFunction as JitFunction
from tracer.runtime.jit import block_until_ready as block_until_ready
from tracer.runtime.jit import disable_jit as disable_jit
from tracer.runtime.jit import jit as jit
from tracer.runtime.staging import eval_shape as eval_shape
from tracer.runtime.staging import make_program as make_program
from tracer.settings import config as config
from tracer.trace.array import Array as Array
from tracer.trace.trace import eager as _slot
from tracer.transforms.autodiff import grad as grad
from tracer.transforms.autodiff import jvp as jvp
from tracer.transforms.autodiff import linear_transpose as linear_transpose
from tracer.transforms.autodiff import linearize as linearize
from tracer.transforms.autodiff import value_and_grad as value_and_grad
from tracer.transforms.autodiff import vjp as vjp
from tracer.transforms.custom import custom_jvp as custom_jvp
from tracer.transforms.custom import custom_vjp as custom_vjp
from tracer.transforms.jacobians import hessian as hessian
from tracer.transforms.jacobians import jacfwd as jacfwd
from tracer.transforms.jacobians import jacobian as jacobian
from tracer.transforms.jacobians import jacrev as jacrev
from tracer.transforms.vectorize import vmap as vmap

__version__ = "0.1.0"
make_jaxpr = make_program

_methods.install(Array)
_slot.execute = _eager.execute
