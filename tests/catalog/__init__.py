"""Tests of rdc.catalog: the catalog and the signer."""
