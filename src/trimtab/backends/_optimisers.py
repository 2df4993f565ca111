"""The graph optimisers of ONNX Runtime on the CPU, by the names under which it can leave them out.

ONNX Runtime ignores a name that it does not know, and cannot be asked which it does. So a name counts as known where it
is listed here (version 1.32, every one checked against what its log says it runs) and stands in the library that is
installed: another version may have dropped it. A known name still does nothing where the level, the machine or the
network does not call for that optimiser; the operators of the profile show what was done.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

OPTIMISERS = (
    "AttentionFusion", "BiasGeluFusion", "BiasSkipLayerNormFusion", "BiasSoftmaxFusion", "CastElimination",
    "ClipQuantRewrite", "CommonSubexpressionElimination", "ConstantFolding", "ConstantSharing",
    "ConvActivationFusion", "ConvAddActivationFusion", "ConvAddFusion", "ConvBNFusion", "ConvMulFusion",
    "DivMulFusion", "DoubleQDQPairsRemover", "DynamicQuantizeMatMulFusion", "EliminateDropout", "EliminateIdentity",
    "EliminateSlice", "EmbedLayerNormFusion", "ExpandElimination", "FastGeluFusion", "FuseReluClip",
    "GatherSliceToSplitFusion", "GatherToSliceFusion", "GeluFusionL1", "GeluFusionL2", "GemmActivationFusion",
    "GemmSumFusion", "GemmTransposeFusion", "LabelEncoderFusion", "LayerNormFusionL1", "LayerNormFusionL2",
    "MatMulAddFusion", "MatMulIntegerToFloatFusion", "MatMulNBitsFusion", "MatMulScaleFusion",
    "MatMul_BatchNormalization_Fusion", "MatmulTransposeFusion", "NchwcTransformer", "NhwcTransformer",
    "NoopElimination", "NotWhereFusion", "Pad_Fusion", "PreShapeNodeElimination", "QDQFinalCleanupTransformer",
    "QDQPropagationTransformer", "QDQS8ToU8Transformer", "QDQSelectorActionTransformer", "QuickGeluFusion",
    "ReluQuantRewrite", "ReshapeFusion", "SimplifiedLayerNormFusion", "SkipLayerNormFusion",
    "SliceConcatToSpaceToDepthFusion", "SwiGluFusion", "TransposeOptimizer",
    "TransposeOptimizer_CPUExecutionProvider", "UnsqueezeElimination", "WeightBiasQuantization", "WhereDummyDq",
)  # fmt: skip

PROVIDER = "CPUExecutionProvider"
"""ONNX Runtime puts some names together: an optimiser and the provider that it works for."""

CHUNK = 1 << 20


def absent(names: Sequence[str], library: Path) -> list[str]:
    """Those of ``names`` that ``library`` does not hold. It is read piece by piece: compiling is charged for memory."""
    sought = {name: name.removesuffix(PROVIDER).encode() for name in names}
    overlap = max((len(text) for text in sought.values()), default=0)
    with library.open("rb") as file:
        tail = b""
        while sought and (piece := file.read(CHUNK)):
            window = tail + piece
            sought = {name: text for name, text in sought.items() if text not in window}
            tail = window[-overlap:]
    return list(sought)
