"""The compiled part. One C file per concern; each module is optional and imported where it is used."""
