"""Other libraries, each behind a module or two: foreign code stays at the edge.

Methods: captum_methods, gradcam. Metrics as protocols: captum_metrics, quantus, both built on
metrics. Networks: torchvision_models, timm_models and hf_models, with weights from files
(checkpoints) or the hub's cache (hub); processors reads what Hugging Face does to pictures; vision
imports the libraries. What adapters share: libraries.
"""
