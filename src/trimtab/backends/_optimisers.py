"""The graph optimisers of ONNX Runtime on the CPU, by the names under which it can leave them out.

ONNX Runtime ignores a name that it does not know, and cannot be asked which it does: this is the list of its versions
1.22 to 1.32, and any other name is refused. A name stands for nothing where the chosen level, the machine or the
version does not run that optimiser; the operators of the profile show what it did.
"""

from __future__ import annotations

OPTIMISERS = (
    "AttentionFusion", "BiasGeluFusion", "BiasSoftmaxFusion", "CastElimination", "ClipQuantRewrite",
    "CommonSubexpressionElimination", "ConstantFolding", "ConstantSharing", "ConvActivationFusion",
    "ConvAddActivationFusion", "ConvAddFusion", "ConvBNFusion", "ConvMulFusion", "DivMulFusion",
    "DoubleQDQPairsRemover", "DynamicQuantizeMatMulFusion", "EliminateDropout", "EliminateIdentity",
    "EliminateSlice", "EmbedLayerNormFusion", "ExpandElimination", "FastGeluFusion", "FuseReluClip",
    "GatherSliceToSplitFusion", "GatherToSliceFusion", "GeluFusionL1", "GeluFusionL2", "GemmActivationFusion",
    "GemmSumFusion", "GemmTransposeFusion", "LabelEncoderFusion", "LayerNormFusionL1", "LayerNormFusionL2",
    "MatMulAddFusion", "MatMulIntegerToFloatFusion", "MatMulNBitsFusion", "MatMulScaleFusion",
    "MatMul_BatchNormalization_Fusion", "MatmulTransposeFusion", "NchwcTransformer", "NhwcTransformer",
    "NoopElimination", "NotWhereFusion", "Pad_Fusion", "PreShapeNodeElimination", "QDQFinalCleanupTransformer",
    "QDQPropagationTransformer", "QDQS8ToU8Transformer", "QDQSelectorActionTransformer", "QuickGeluFusion",
    "ReluQuantRewrite", "ReshapeFusion", "SimplifiedLayerNormFusion", "SkipLayerNormFusion", "TransposeOptimizer",
    "TransposeOptimizer_CPUExecutionProvider", "UnsqueezeElimination", "WeightBiasQuantization",
)  # fmt: skip
