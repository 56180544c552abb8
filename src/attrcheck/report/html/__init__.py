"""`report.html`: one page that opens from disk, offline, with or without scripts."""
