"""List the chunks of one document by a store's own client: one module per client, for every framework.

Clients are objects that the framework holds already. None of their packages is imported before it is used.
"""
