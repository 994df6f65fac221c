"""Which ONNX ops are native, which go through a function body, the host, or not at all."""

from __future__ import annotations

from typing import cast

from onnx import defs

from satura.rewrite.onnx.checks import OLDEST_OPSET
from satura.rewrite.onnx.control_flow import CONTROL_FLOW, MOST_GUARDED, MOST_STEPS
from satura.rewrite.onnx.lower.fallback import NEW_NAMES
from satura.rewrite.onnx.lower.table import LOWERINGS
from satura.rewrite.onnx.opsets import Bodies

WAYS = {
    "native": "Lowered to canonical ops",
    "body": "Lowered through the body that ONNX defines",
    "control": "Lowered by copying their own bodies, where the number of steps is known",
    "host": "Run on the host, slowly and with a warning; where only data decide extents, between"
    " two programs",
    "unsupported": "Refused with an error that names the node",
}
PARTLY = {
    "Loop, Scan": "over an axis of open length they are compiled for 16 steps, or as many as `dims`"
    " says, and anew for each other length; where its steps have more than 128 nodes in all, Python"
    " takes them in calls, and all lengths share the programs of the bodies. A saved program takes"
    f" {MOST_STEPS} steps at most.",
    "If, Loop, Scan": "where data decide the shape of a branch or how many steps there are, or"
    f" whether an axis has to be so long, or there are always more than {MOST_STEPS}, or data may"
    f" end steps that have more than {MOST_GUARDED} nodes in all, Python takes the steps, between"
    " two programs, and the bodies are programs. So it does at sizes at which"
    " one of the branches does not run, where a saved program refuses calls. The rank and the"
    " element type of each result must follow from the bodies, whichever branch is taken and"
    " however many steps: branches whose results differ in rank are refused. In saved models they"
    " stay, with the nodes that read what has no rank. Where ONNX's shape"
    " inference finds no rank, branches need declared shapes, and so do bodies of which Python"
    " takes the steps only where there are many.",
    "Scan": "of opset 8 is a program, which newer opsets have no node for: `satura.optimize` takes"
    " it where its batch and its steps are numbers.",
    "RoiAlign": "with a `sampling_ratio` of 0, ONNX's default, and of maxima, it runs on the host.",
    "NonMaxSuppression": "it is a kernel of its own, which Python calls between two programs.",
    "ScatterElements": "of bool with a `reduction` it runs on the host.",
    "Compress, Range": "with a mask of open length, and a limit that is computed of a tensor of"
    " several axes, or other data, they run on the host, between two programs. So do other ops"
    " of whose results data decide extents, but not the rank, as a TopK by its k.",
}
"""Ops that go another way in some cases."""

DIFFERENCES = {
    "Relu": "-0.0 becomes 0.0, not -0.0. ONNX: `y = max(0, x)`.",
    "Clip": "an infinity stays where no bound is given on its side, and does not become the largest"
    " float.",
    "Cast": "f64 becomes f16 or bf16 in one rounding; onnxruntime rounds to f32 first, so that a"
    " number next to the middle of two may go the other way. ONNX does not say how a cast rounds;"
    " IEEE 754 rounds a conversion once.",
    "Slice": "a backward slice that ends at 2^31 - 1 is empty. ONNX: `INT_MIN` means the end of a"
    " backward slice.",
    "Reshape": "in a saved model a computed shape with several 0s, without -1, has them all; ONNX"
    " copies the input's extents in their place, which may not all be 0.",
    "Resize": "`align_corners` and `tf_crop_and_resize` follow the onnx package's reference. So"
    " does nearest, whatever the coordinates: by a scale that no float is, as 1.3 or a third,"
    " places on an element, or in the middle of two (`half_pixel`), are rounded to the other side"
    " by onnxruntime.",
    "Gather, GatherElements, GatherND": "an index outside is an error where a result has an element"
    " that it chooses. What no result depends on is not computed: what a Slice behind it leaves"
    " out, or all where only their Shape is read.",
    "ReduceSum, ReduceMean, CumSum": "of -0.0 alone it is 0.0, not -0.0: sums start from 0.0, but"
    " for a CumSum, and in fp32 any sum, along an axis of extent 1.",
    "QuantizeLinear": "x is divided by the scale in f32, whatever the type of the scale and"
    " `precision` say: near the middle of two steps a quotient in f16 may go the other way.",
    "DynamicQuantizeLinear": "of zeros alone `y_scale` is 0.0, as the function in ONNX's definition"
    " computes it, and not 1.0.",
    "ConvTranspose": "under `auto_pad` SAME the result is the input's extent times the stride, also"
    " where the kernel is shorter than the stride. A weight that is infinite or NaN is multiplied"
    " by the zeros around the elements, and where the strides multiply to more than 16 such an"
    " element by the zeros that fill up the kernel: both give NaN.",
    "MaxPool": "`auto_pad` SAME regards dilations. NaN under a window is its maximum, and -inf that"
    " of a window of -inf alone; a saved model leaves both to the runtime, as ONNX does.",
    "RNN, GRU, LSTM": "ThresholdedRelu without `activation_alpha` has 1.0, the default of ONNX's op"
    " of this name, and not 0. Affine and ScaledTanh, which ONNX has no ops of, are refused without"
    " their numbers, for which onnxruntime takes 0.",
    "GroupQueryAttention": "of a single row, `seqlens_k` is taken to be one less than"
    " `total_sequence_length` where sizes say what this is, as the op's definition has it.",
    "NonMaxSuppression": "boxes whose scores are NaN come last, in the order in which they are"
    " given; onnxruntime takes them from a heap in no order that is defined.",
    "QLinearSoftmax": "each result is rounded once; onnxruntime's may be a step off.",
    "AveragePool, LpPool, MaxPool": "a window that is longer than the axis fits nowhere, also where"
    " it is by less than a stride. ONNX: `floor((input + pads - kernel) / stride + 1)`.",
}
UNDEFINED = {
    "Attention, QAttention, MultiHeadAttention": "a mask of other shapes than [batch],"
    " [2 · batch], [batch, keys] and [batch, queries, keys], a past in a buffer that is shared,"
    " rotary embeddings inside.",
    "GroupQueryAttention": "a cache that is quantised, normalised queries and keys, smooth softmax"
    " and sinks. Keys and values are as many as those of the past and the new ones: a call whose"
    " past has place for more is refused where the shape of a mask says how many there are.",
    "QGemm": "`y_scale` without `y_zero_point` and the other way round, which onnxruntime computes"
    " in ways that its own schema does not say.",
    "DynamicQuantizeLSTM, MatMulBnb4": "all forms: the first quantises its state anew in each step,"
    " which no op of ONNX's does, and `op_types_to_quantize` of onnxruntime's `quantize_dynamic`"
    " leaves an LSTM as it is; the second has weights in the 4 bits of bitsandbytes.",
    "MatMulNBits": "`g_idx`. What multiplies is not rounded, whatever `accuracy_level` allows.",
    "EmbedLayerNormalization": "a `mask_index_type`.",
    "SkipSimplifiedLayerNormalization": "a mean and `inv_std_var`, which onnxruntime leaves out.",
    "BiasSoftmax": "axes but the last, and `is_inner_broadcast`.",
}
"""Forms of onnxruntime's ops that are refused."""

CASES_ON_HOST = {
    "the number of results depends on data": ("NonMaxSuppression", "NonZero", "Unique"),
    "they draw random numbers": ("Dropout", "RandomUniformLike"),
    "they read pictures or sequences of words": ("ImageDecoder", "TfIdfVectorizer"),
    "they are of other domains": (
        "Adagrad", "Adam", "ArrayFeatureExtractor", "Binarizer", "FlexAttention", "Momentum",
        "TreeEnsemble",
    ),
    "nobody has written a lowering, for Einsum one of a repeated label, for MaxUnpool one with an"
    " output shape, for RoiAlign one of maxima": (
        "BitCast", "Det", "Einsum", "MaxUnpool", "MelWeightMatrix", "RoiAlign",
    ),
}  # fmt: skip
"""Why the onnx package's own backend tests run ops on the host; a test holds it against them."""

CASES_REFUSED = {
    "element type": "strings are not tensors of a program, float8e8m0 is no element type:"
    " LabelEncoder, RegexFullMatch, StringConcat, StringNormalizer, StringSplit, Equal, Cast",
    "depends on data": "the number of results depends on data, and is not declared: Unique, which"
    " `satura.compile` runs between two programs, and `satura.load` refuses",
    "control flow": "a graph inside a node of another domain: FlexAttention",
    "no reference": "it is of training: Gradient",
}
"""Parts of the messages with which backend tests are refused, and what they are about."""

NEWEST = 25  # what the oldest onnx that is admitted knows: the page must not depend on which it is
OPSETS = f"{OLDEST_OPSET} to {NEWEST}"
_NO_REFERENCE = ("MaxRoiPool", "Multinomial")


def coverage() -> dict[str, list[str]]:
    """Ops of ONNX's own domain by the way they take, each list sorted by name."""
    schemas: dict[str, defs.OpSchema] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version <= NEWEST:
            older = schemas.get(schema.name)
            if older is None or older.since_version < schema.since_version:
                schemas[schema.name] = schema
    ways: dict[str, list[str]] = {way: [] for way in WAYS}
    for name in sorted(schemas):
        ways[_way(schemas[name])].append(name)
    return ways


def by_family(native: list[str]) -> dict[str, list[str]]:
    """Names of `native` by the file of rewrite/onnx/ that the lowering stands in."""
    families: dict[str, list[str]] = {}
    for name in native:
        families.setdefault(LOWERINGS[_now(name)].__module__.rpartition(".")[2], []).append(name)
    return dict(sorted(families.items()))


def _now(name: str) -> str:
    """What the op called `name` is called in newer opsets."""
    return NEW_NAMES[name][0] if name in NEW_NAMES else name


def _way(schema: defs.OpSchema) -> str:
    if _now(schema.name) in LOWERINGS:
        return "native"
    if schema.name in _NO_REFERENCE:
        return "unsupported"
    if schema.name in CONTROL_FLOW:
        return "control"
    if schema.deprecated or not all(map(_takes_tensors, [*schema.inputs, *schema.outputs])):
        return "unsupported"
    if any(a.type == defs.OpSchema.AttrType.GRAPH for a in schema.attributes.values()):
        return "unsupported"
    bodies = cast(Bodies, schema)
    if bodies.function_opset_versions or bodies.context_dependent_function_opset_versions:
        return "body"
    return "host"


def _takes_tensors(parameter: defs.OpSchema.FormalParameter) -> bool:
    """Whether numbers fit: sequences, optionals and strings are not tensors of a program."""
    return any(text.startswith("tensor(") and text != "tensor(string)" for text in parameter.types)
