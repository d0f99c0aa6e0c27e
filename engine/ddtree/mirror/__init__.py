"""A read-only file server with the model hub's HTTP interface: nodes fetch from one another, or from a folder."""
