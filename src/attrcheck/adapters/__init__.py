"""Other libraries, each behind a module or two: foreign code stays at the edge.

Methods: captum_methods, gradcam. Metrics as protocols: captum_metrics, quantus, both built on
metrics. Networks: vision (torchvision, timm). What adapters share: libraries.
"""
