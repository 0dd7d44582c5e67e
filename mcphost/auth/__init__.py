"""Signs servers in and out with OAuth, and puts tokens on their requests.

`mcphost.auth.flow` decides each step as pure generators; `mcphost.auth.authorizer` carries the steps out;
`mcphost.auth.storage` keeps the tokens; `mcphost.auth.ports` is all that a host sees. How a person is asked is
the host's business.
"""
