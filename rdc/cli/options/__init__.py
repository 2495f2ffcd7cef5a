"""The option tables of the verbs, and the readers that turn a command line into a request."""
