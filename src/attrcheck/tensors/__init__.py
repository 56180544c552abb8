"""What several rooms do with tensors: batches, draws, cells, blurs."""
