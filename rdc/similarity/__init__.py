"""Finds similar files, sets and texts: traits, min-wise samples, the resemblance that they suggest, shingles,
and an index of millions of files.

Public names load their module on first use.
"""

from __future__ import annotations

TYPE_CHECKING = False

_MODULES = {
    "Accidents": "estimate",
    "Banding": "banding",
    "BottomRanks": "samples",
    "Clusters": "cluster_labels",
    "Estimate": "estimate",
    "FeatureColumn": "texts",
    "KeyPair": "key_pairs",
    "PackedSamples": "bbit",
    "Samples": "samples",
    "TextColumn": "texts",
    "acceptance": "banding",
    "agreeing_pairs": "key_pairs",
    "bbit_constants": "bbit",
    "bbit_estimate": "bbit",
    "bbit_matches": "bbit",
    "bbit_pack": "bbit",
    "bbit_variance": "bbit",
    "bottom_k": "samples",
    "clusters": "cluster_labels",
    "density_of": "hamming",
    "hamming_estimate": "hamming",
    "hamming_probability": "hamming",
    "hamming_variance": "hamming",
    "html_text": "texts",
    "minhash": "samples",
    "one_permutation": "samples",
    "quantise_density": "hamming",
    "shingles": "texts",
    "storage_factor": "bbit",
    "supershingles": "banding",
    "url_bigrams": "texts",
    "weighted_minhash": "weighted",
    "xor_pairs": "bbit",
    "xor_pairs_estimate": "bbit",
    "xor_pairs_variance": "bbit",
}

if TYPE_CHECKING:
    from rdc.similarity import lsh
    from rdc.similarity.banding import Banding, acceptance, supershingles
    from rdc.similarity.bbit import (
        PackedSamples,
        bbit_constants,
        bbit_estimate,
        bbit_matches,
        bbit_pack,
        bbit_variance,
        storage_factor,
        xor_pairs,
        xor_pairs_estimate,
        xor_pairs_variance,
    )
    from rdc.similarity.cluster_labels import Clusters, clusters
    from rdc.similarity.estimate import Accidents, Estimate
    from rdc.similarity.hamming import (
        density_of,
        hamming_estimate,
        hamming_probability,
        hamming_variance,
        quantise_density,
    )
    from rdc.similarity.key_pairs import KeyPair, agreeing_pairs
    from rdc.similarity.samples import BottomRanks, Samples, bottom_k, minhash, one_permutation
    from rdc.similarity.texts import FeatureColumn, TextColumn, html_text, shingles, url_bigrams
    from rdc.similarity.weighted import weighted_minhash

__all__ = [
    "Accidents",
    "Banding",
    "BottomRanks",
    "Clusters",
    "Estimate",
    "FeatureColumn",
    "KeyPair",
    "PackedSamples",
    "Samples",
    "TextColumn",
    "acceptance",
    "agreeing_pairs",
    "bbit_constants",
    "bbit_estimate",
    "bbit_matches",
    "bbit_pack",
    "bbit_variance",
    "bottom_k",
    "clusters",
    "density_of",
    "hamming_estimate",
    "hamming_probability",
    "hamming_variance",
    "html_text",
    "lsh",
    "minhash",
    "one_permutation",
    "quantise_density",
    "shingles",
    "storage_factor",
    "supershingles",
    "url_bigrams",
    "weighted_minhash",
    "xor_pairs",
    "xor_pairs_estimate",
    "xor_pairs_variance",
]


def __getattr__(name: str) -> object:
    import importlib

    if name == "lsh":
        return importlib.import_module("rdc.similarity.lsh")
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(f"rdc.similarity.{module}"), name)
    return found
