"""Programs as ONNX models, one file per family of ops."""
