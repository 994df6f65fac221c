"""ONNX nodes as canonical ops, one file per family."""
