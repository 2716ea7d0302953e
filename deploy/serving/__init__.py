"""Exported models: ONNX files, model cards and the local server."""
