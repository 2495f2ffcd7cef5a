"""Finds similar files, sets and texts: traits, min-wise samples, the resemblance that they suggest, shingles,
and an index of millions of files.

Public names load their module on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False

_PUBLIC = {
    "banding": "Banding Clusters KeyPair acceptance agreeing_pairs clusters supershingles",
    "bbit": (
        "PackedSamples bbit_constants bbit_estimate bbit_matches bbit_pack bbit_variance density_of "
        "hamming_estimate hamming_probability hamming_variance quantise_density storage_factor xor_pairs "
        "xor_pairs_estimate xor_pairs_variance"
    ),
    "samples": "BottomRanks Samples bottom_k minhash one_permutation weighted_minhash",
    "texts": "FeatureColumn TextColumn html_text shingles url_bigrams",
    "traits": "Accidents Estimate",
}
"""Public names by the module that defines them. Type checkers read the imports below."""

_MODULES = {name: module for module, names in _PUBLIC.items() for name in names.split()}

__all__ = [*_MODULES, "lsh"]  # noqa: PLE0604 - every name is a text

if TYPE_CHECKING:
    from rdc.similarity import lsh as lsh
    from rdc.similarity.banding import Banding as Banding
    from rdc.similarity.banding import Clusters as Clusters
    from rdc.similarity.banding import KeyPair as KeyPair
    from rdc.similarity.banding import acceptance as acceptance
    from rdc.similarity.banding import agreeing_pairs as agreeing_pairs
    from rdc.similarity.banding import clusters as clusters
    from rdc.similarity.banding import supershingles as supershingles
    from rdc.similarity.bbit import PackedSamples as PackedSamples
    from rdc.similarity.bbit import bbit_constants as bbit_constants
    from rdc.similarity.bbit import bbit_estimate as bbit_estimate
    from rdc.similarity.bbit import bbit_matches as bbit_matches
    from rdc.similarity.bbit import bbit_pack as bbit_pack
    from rdc.similarity.bbit import bbit_variance as bbit_variance
    from rdc.similarity.bbit import density_of as density_of
    from rdc.similarity.bbit import hamming_estimate as hamming_estimate
    from rdc.similarity.bbit import hamming_probability as hamming_probability
    from rdc.similarity.bbit import hamming_variance as hamming_variance
    from rdc.similarity.bbit import quantise_density as quantise_density
    from rdc.similarity.bbit import storage_factor as storage_factor
    from rdc.similarity.bbit import xor_pairs as xor_pairs
    from rdc.similarity.bbit import xor_pairs_estimate as xor_pairs_estimate
    from rdc.similarity.bbit import xor_pairs_variance as xor_pairs_variance
    from rdc.similarity.samples import BottomRanks as BottomRanks
    from rdc.similarity.samples import Samples as Samples
    from rdc.similarity.samples import bottom_k as bottom_k
    from rdc.similarity.samples import minhash as minhash
    from rdc.similarity.samples import one_permutation as one_permutation
    from rdc.similarity.samples import weighted_minhash as weighted_minhash
    from rdc.similarity.texts import FeatureColumn as FeatureColumn
    from rdc.similarity.texts import TextColumn as TextColumn
    from rdc.similarity.texts import html_text as html_text
    from rdc.similarity.texts import shingles as shingles
    from rdc.similarity.texts import url_bigrams as url_bigrams
    from rdc.similarity.traits import Accidents as Accidents
    from rdc.similarity.traits import Estimate as Estimate


def __getattr__(name: str) -> object:
    import importlib

    if name == "lsh":
        return importlib.import_module("rdc.similarity.lsh")
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"rdc.similarity.{module}"), name)
    return found
