"""Records on disk, and the keys that find them again."""
