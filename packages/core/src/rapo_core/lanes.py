"""32 episodes side by side as one value inside numba kernels.

Numba vectorises only some loops, and none with the branches and the many arrays of the cascade
step (4x slower when tried). Here a *lane value* is one LLVM vector of 32 numbers with the usual
operators, so a formula written for a float also runs on 32 of them: the field update, psi and the
hash exist once.

Types: `FLOATS` (32 float32), `DOUBLES` (32 float64), `UINTS` (32 uint32), `MASK` (32 booleans). A
scalar of the same kind mixed with lanes is spread over them. Arithmetic is plain IEEE: no fused or
reordered operations, so lanes and scalars agree to the last bit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils as untyped_cgutils
from numba.extending import models, register_model

from rapo_core.jit import intrinsic, lower_builtin, type_callable

cgutils: Any = untyped_cgutils

LANES = 32
"""Episodes of a block: four AVX registers of float32, or one bit each of a uint32."""


class _FloatsType(types.Type):
    def __init__(self) -> None:
        super().__init__("Lanes(float32)")


class _DoublesType(types.Type):
    def __init__(self) -> None:
        super().__init__("Lanes(float64)")


class _UintsType(types.Type):
    def __init__(self) -> None:
        super().__init__("Lanes(uint32)")


class _MaskType(types.Type):
    def __init__(self) -> None:
        super().__init__("Lanes(bool)")


FLOATS, DOUBLES, UINTS, MASK = _FloatsType(), _DoublesType(), _UintsType(), _MaskType()
_SCALAR = {FLOATS: types.float32, DOUBLES: types.float64, UINTS: types.uint32}
_IR = {
    FLOATS: ir.VectorType(ir.FloatType(), LANES),
    DOUBLES: ir.VectorType(ir.DoubleType(), LANES),
    UINTS: ir.VectorType(ir.IntType(32), LANES),
    MASK: ir.VectorType(ir.IntType(1), LANES),
}


def _register(lane_type: types.Type) -> None:
    @register_model(type(lane_type))
    class Model(models.PrimitiveModel):
        def __init__(self, dmm: Any, fe_type: Any) -> None:
            super().__init__(dmm, fe_type, _IR[lane_type])  # type: ignore[no-untyped-call]


for _type in _IR:
    _register(_type)


def _spread(builder: Any, value: Any, have: Any, want: Any) -> Any:
    """`value` as lanes of type `want`: itself, or a scalar copied 32 times."""
    if have == want:
        return value
    undefined = ir.Constant(_IR[want], ir.Undefined)
    first = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
    return builder.shuffle_vector(first, undefined, zeros)


def _binary(function: Any, operand: Any, result: Any, emit: Callable[..., Any]) -> None:
    """Teach `function` (an operator) to work on lanes of `operand`, scalars mixed in.

    Typed and lowered in place: as an `overload` each pair of types would be compiled as a function
    of its own, a fifth of the time that a kernel of lanes takes to compile.
    """
    scalar = _SCALAR[operand]
    pairs = [(operand, operand), (operand, scalar), (scalar, operand)]

    @type_callable(function)
    def typed(context: Any) -> Any:
        return lambda a, b: result if (a, b) in pairs else None

    def lowered(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = zip(args, signature.args, strict=True)
        return emit(builder, *(_spread(builder, v, t, operand) for v, t in values))

    for pair in pairs:
        lower_builtin(function, *pair)(lowered)


for _real in (FLOATS, DOUBLES):
    _binary(operator.add, _real, _real, lambda builder, x, y: builder.fadd(x, y))
    _binary(operator.sub, _real, _real, lambda builder, x, y: builder.fsub(x, y))
    _binary(operator.mul, _real, _real, lambda builder, x, y: builder.fmul(x, y))
    _binary(operator.truediv, _real, _real, lambda builder, x, y: builder.fdiv(x, y))
    _binary(operator.lt, _real, MASK, lambda builder, x, y: builder.fcmp_ordered("<", x, y))
    _binary(operator.gt, _real, MASK, lambda builder, x, y: builder.fcmp_ordered(">", x, y))
_binary(operator.add, UINTS, UINTS, lambda builder, x, y: builder.add(x, y))
_binary(operator.mul, UINTS, UINTS, lambda builder, x, y: builder.mul(x, y))
_binary(operator.xor, UINTS, UINTS, lambda builder, x, y: builder.xor(x, y))
_binary(operator.rshift, UINTS, UINTS, lambda builder, x, y: builder.lshr(x, y))


def _row_pointer(context: Any, builder: Any, array_type: Any, args: Any, lane_type: Any) -> Any:
    array = context.make_array(array_type)(context, builder, args[0])
    return builder.bitcast(builder.gep(array.data, [args[1]]), _IR[lane_type].as_pointer())


@intrinsic
def load(typingctx: Any, array: Any, offset: Any) -> Any:
    """Lanes from `array[offset:offset + 32]` of a C-contiguous 1-D array of a kind with lanes."""
    lane_type = next(lanes for lanes, scalar in _SCALAR.items() if scalar == array.dtype)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _row_pointer(context, builder, signature.args[0], args, lane_type)
        value = builder.load(pointer)
        value.align = array.dtype.bitwidth // 8
        return value

    return lane_type(array, types.intp), codegen


@intrinsic
def store(typingctx: Any, array: Any, offset: Any, lanes: Any) -> Any:
    """Write lanes to `array[offset:offset + 32]`."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = _row_pointer(context, builder, signature.args[0], args, signature.args[2])
        builder.store(args[2], pointer).align = array.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), codegen


@intrinsic
def bits_of(typingctx: Any, mask: Any) -> Any:
    """The 32 booleans of a mask as the bits of a uint32, lane 0 lowest."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(args[0], ir.IntType(32))

    return types.uint32(mask), codegen


@intrinsic
def ones_of(typingctx: Any, bits: Any) -> Any:
    """1 in each lane whose bit of a uint32 is set, lane 0 lowest, 0 in the others."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        spread = _spread(builder, args[0], types.uint32, UINTS)
        own = builder.and_(spread, ir.Constant(_IR[UINTS], [1 << i for i in range(LANES)]))
        chosen = builder.icmp_unsigned("!=", own, _constant(_IR[UINTS], 0))
        return builder.select(chosen, _constant(_IR[FLOATS], 1.0), _constant(_IR[FLOATS], 0.0))

    return FLOATS(types.uint32), codegen


@intrinsic
def add_eight(typingctx: Any, to: Any, at: Any, source: Any, start: Any) -> Any:
    """`to[at:at + 8] += source[start:start + 8]` of C-contiguous 1-D float32 arrays."""
    eight = ir.VectorType(ir.FloatType(), 8)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        values = []
        for i in (0, 2):
            array = context.make_array(signature.args[i])(context, builder, args[i])
            pointer = builder.bitcast(builder.gep(array.data, [args[i + 1]]), eight.as_pointer())
            values.append((pointer, builder.load(pointer)))
            values[-1][1].align = 4
        builder.store(builder.fadd(values[0][1], values[1][1]), values[0][0]).align = 4
        return context.get_dummy_value()

    return types.void(to, types.intp, source, types.intp), codegen


def where(condition: Any, a: Any, b: Any) -> Any:
    """`a` where the condition holds, else `b`: for scalars and for lanes alike."""
    return np.where(condition, a, b)


@type_callable(where)
def _type_of_where(context: Any) -> Any:
    def typed(condition: Any, a: Any, b: Any) -> Any:
        if condition != MASK:
            return context.unify_types(a, b)
        return DOUBLES if DOUBLES in (a, b) else FLOATS

    return typed


@lower_builtin(where, MASK, types.Any, types.Any)
def _where_lanes(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    wanted = signature.return_type
    values = (_spread(builder, args[i], signature.args[i], wanted) for i in (1, 2))
    return builder.select(args[0], *values)


@lower_builtin(where, types.Boolean, types.Any, types.Any)
def _where_scalar(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    wanted = signature.return_type
    values = (context.cast(builder, args[i], signature.args[i], wanted) for i in (1, 2))
    return builder.select(args[0], *values)


def word(x: Any) -> Any:
    """`x` modulo 2^32. Numba widens uint32 arithmetic to 64 bits; lanes stay 32 bits wide."""
    return np.uint32(x)


@type_callable(word)
def _type_of_word(context: Any) -> Any:
    return lambda x: UINTS if x == UINTS else types.uint32


@lower_builtin(word, UINTS)
@lower_builtin(word, types.Integer)
def _word(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return context.cast(builder, args[0], signature.args[0], signature.return_type)


def _constant(ir_type: Any, value: float) -> Any:
    many = isinstance(ir_type, ir.VectorType)
    return ir.Constant(ir_type, [value] * LANES if many else value)


def _float_and_int(lanes: bool) -> tuple[Any, Any]:
    """IR types of a float32 and an int32, as lanes or as scalars."""
    return (_IR[FLOATS], _IR[UINTS]) if lanes else (ir.FloatType(), ir.IntType(32))


@intrinsic
def unit(typingctx: Any, x: Any) -> Any:
    """The upper 24 bits of words as float32 in [0, 1)."""
    real, integer = _float_and_int(x == UINTS)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        upper = builder.lshr(args[0], _constant(integer, 8))
        return builder.fmul(builder.sitofp(upper, real), _constant(real, 2.0**-24))

    return (FLOATS if x == UINTS else types.float32)(x), codegen


@intrinsic
def whole(typingctx: Any, x: Any) -> Any:
    """`x` >= 0 rounded down, as a float (float32 or lanes of it)."""
    real, integer = _float_and_int(x == FLOATS)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.sitofp(builder.fptosi(args[0], integer), real)

    return x(x), codegen


@intrinsic
def whole_above(typingctx: Any, x: Any) -> Any:
    """`x` rounded up, as lanes of float64."""
    kind = ir.FunctionType(_IR[DOUBLES], [_IR[DOUBLES]])

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        name = f"llvm.ceil.v{LANES}f64"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), args)

    return DOUBLES(x), codegen


@intrinsic
def two_to_minus(typingctx: Any, k: Any) -> Any:
    """`2^-k` for a whole-numbered float k in 0..126, by writing the exponent bits."""
    real, integer = _float_and_int(k == FLOATS)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        exponent = builder.sub(_constant(integer, 127), builder.fptosi(args[0], integer))
        return builder.bitcast(builder.shl(exponent, _constant(integer, 23)), real)

    return k(k), codegen


@intrinsic
def fused(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """`a * b + c` of lanes in one instruction, `a` a float32 or lanes.

    Rounded once. Use it only where the product is exact, as with lanes that are 0 or 1: then it is
    the same number as two operations give, in half the time.
    """
    name = f"llvm.fma.v{LANES}f32"

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(_IR[FLOATS], [_IR[FLOATS]] * 3)
        values = [_spread(builder, v, t, FLOATS) for v, t in zip(args, signature.args, strict=True)]
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, values)

    return FLOATS(a, b, c), codegen


@intrinsic
def root(typingctx: Any, x: Any) -> Any:
    """Square root of x >= 0, correctly rounded (float32 or lanes of it)."""
    real, _ = _float_and_int(x == FLOATS)
    name = f"llvm.sqrt.v{LANES}f32" if x == FLOATS else "llvm.sqrt.f32"

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = ir.FunctionType(real, [real])
        function = cgutils.get_or_insert_function(builder.module, kind, name)
        return builder.call(function, args)

    return x(x), codegen
