"""The suites: what is run against methods. Installed as `attrcheck.suites`."""
