"""A model of a disk that loses power, and the scenes it is tried on."""
