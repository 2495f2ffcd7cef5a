"""rdc as a service: who may connect, what they may do where, and the processes that serve them."""
