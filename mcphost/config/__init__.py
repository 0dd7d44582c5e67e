"""The user's configuration: finding, reading and validating it, resolving references, and state files.

The user's configuration file is never written; ``servers.toml`` beside it is mcphost's own.
Importing this package reads no file.
"""

from mcphost.config.changes import Changes, compare
from mcphost.config.fields import entry_of
from mcphost.config.identities import IdentityConfig
from mcphost.config.limits import Limits
from mcphost.config.loading import (
    ConfigLocation,
    LoadedConfig,
    find_config,
    load,
    load_found,
    parse,
)
from mcphost.config.models import (
    OFFICIAL_REGISTRY,
    UI,
    ChatConfig,
    Config,
    ModelConfig,
    ProfileConfig,
    RegistryConfig,
    ServeConfig,
)
from mcphost.config.policy import Policy, PolicyAction, names_agent, rule_matches
from mcphost.config.problems import ConfigErrors
from mcphost.config.references import Reference, references, references_within
from mcphost.config.resolved import (
    ResolvedIdentity,
    ResolvedModel,
    ResolvedRoot,
    ResolvedServer,
    resolve_identity,
    resolve_model,
    resolve_roots,
    resolve_server,
)
from mcphost.config.servers import (
    AssertionConfig,
    CapabilitiesConfig,
    ComparedServer,
    GivenServer,
    OAuthConfig,
    RecordedServer,
    RootConfig,
    SamplingConfig,
    ServerConfig,
    Sharing,
    ToolConfig,
)
from mcphost.config.state import TrustedFolders, read_toml, state_folder, update_toml
from mcphost.config.values import KEYRING_SERVICE, Values
from mcphost.places import home_folder, servers_path, users_path, with_tilde, working_folder

__all__ = [
    "KEYRING_SERVICE",
    "OFFICIAL_REGISTRY",
    "UI",
    "AssertionConfig",
    "CapabilitiesConfig",
    "Changes",
    "ChatConfig",
    "ComparedServer",
    "Config",
    "ConfigErrors",
    "ConfigLocation",
    "GivenServer",
    "IdentityConfig",
    "Limits",
    "LoadedConfig",
    "ModelConfig",
    "OAuthConfig",
    "Policy",
    "PolicyAction",
    "ProfileConfig",
    "RecordedServer",
    "Reference",
    "RegistryConfig",
    "ResolvedIdentity",
    "ResolvedModel",
    "ResolvedRoot",
    "ResolvedServer",
    "RootConfig",
    "SamplingConfig",
    "ServeConfig",
    "ServerConfig",
    "Sharing",
    "ToolConfig",
    "TrustedFolders",
    "Values",
    "compare",
    "entry_of",
    "find_config",
    "home_folder",
    "load",
    "load_found",
    "names_agent",
    "parse",
    "read_toml",
    "references",
    "references_within",
    "resolve_identity",
    "resolve_model",
    "resolve_roots",
    "resolve_server",
    "rule_matches",
    "servers_path",
    "state_folder",
    "update_toml",
    "users_path",
    "with_tilde",
    "working_folder",
]
