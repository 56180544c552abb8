"""What keeps methods apart: a process as it was is put back, or a process of their own."""
