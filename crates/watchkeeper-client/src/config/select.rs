//! Selection of one context, with its cluster and user, from a kubeconfig.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use kube_client::config::{AuthInfo, Cluster, Context, ExecAuthCluster};
use secrecy::ExposeSecret;

use super::{ClientConfig, ConfigError, Environment, Kubeconfig, loader::Choice};
use crate::transport::{ExecPlugin, Impersonation, InlineOrFile, Proxy, server_name};

/// The extension of a cluster entry that is passed to its exec plugin.
const EXEC_EXTENSION: &str = "client.authentication.k8s.io/exec";

pub(super) fn select(
    kubeconfig: &Kubeconfig,
    choice: &Choice,
    environment: &Environment,
) -> Result<ClientConfig, ConfigError> {
    let entries = Entries::of(kubeconfig, choice)?;
    if !kubeconfig.is_trusted {
        entries.check_trust()?;
    }
    let mut config = entries.cluster(environment)?;
    entries.user(&mut config, environment)?;
    if let Some(namespace) = &entries.context.namespace {
        config.default_namespace.clone_from(namespace);
    }
    Ok(config)
}

/// The entries of one context.
struct Entries<'a> {
    context: &'a Context,
    cluster_name: &'a str,
    cluster: &'a Cluster,
    user_name: &'a str,
    user: AuthInfo,
}

impl<'a> Entries<'a> {
    fn of(kubeconfig: &'a Kubeconfig, choice: &'a Choice) -> Result<Self, ConfigError> {
        let origin = || kubeconfig.origin.clone();
        let file = &kubeconfig.merged;

        let known = || file.contexts.iter().map(|named| named.name.clone()).collect();
        let name = choice.context.as_ref().or(file.current_context.as_ref());
        let name = name.ok_or_else(|| ConfigError::NoCurrentContext { origin: origin(), known: known() })?;
        let named = file.contexts.iter().find(|named| named.name == *name);
        let context = named.and_then(|named| named.context.as_ref()).ok_or_else(|| {
            ConfigError::UnknownContext { origin: origin(), name: name.clone(), known: known() }
        })?;

        let cluster_name = choice.cluster.as_ref().unwrap_or(&context.cluster);
        let named = file.clusters.iter().find(|named| named.name == *cluster_name);
        let cluster =
            named.and_then(|named| named.cluster.as_ref()).ok_or_else(|| ConfigError::UnknownCluster {
                origin: origin(),
                context: name.clone(),
                name: cluster_name.clone(),
                known: file.clusters.iter().map(|named| named.name.clone()).collect(),
            })?;

        // A context without a user is anonymous; a user that does not exist is an error.
        let Some(user_name) = choice.user.as_ref().or(context.user.as_ref()) else {
            let user = AuthInfo::default();
            return Ok(Self { context, cluster_name, cluster, user_name: "", user });
        };
        let named = file.auth_infos.iter().find(|named| named.name == *user_name);
        let named = named.ok_or_else(|| ConfigError::UnknownUser {
            origin: origin(),
            context: name.clone(),
            name: user_name.clone(),
            known: file.auth_infos.iter().map(|named| named.name.clone()).collect(),
        })?;
        let user = named.auth_info.clone().unwrap_or_default();
        Ok(Self { context, cluster_name, cluster, user_name, user })
    }

    fn check_trust(&self) -> Result<(), ConfigError> {
        let (cluster, user) = (self.cluster, &self.user);
        let of_cluster = [
            (cluster.certificate_authority.is_some(), "certificate-authority"),
            (cluster.proxy_url.is_some(), "proxy-url"),
            (cluster.insecure_skip_tls_verify == Some(true), "insecure-skip-tls-verify"),
        ];
        let of_user = [
            (user.exec.is_some(), "exec"),
            (user.auth_provider.is_some(), "auth-provider"),
            (user.token_file.is_some(), "tokenFile"),
            (user.client_certificate.is_some(), "client-certificate"),
            (user.client_key.is_some(), "client-key"),
        ];
        let refused = |fields: &[(bool, &'static str)]| {
            fields.iter().find(|(is_used, _)| *is_used).map(|(_, field)| *field)
        };
        if let Some(field) = refused(&of_cluster) {
            return Err(ConfigError::NotTrusted { entry: format!("cluster {:?}", self.cluster_name), field });
        }
        match refused(&of_user) {
            Some(field) => {
                Err(ConfigError::NotTrusted { entry: format!("user {:?}", self.user_name), field })
            }
            None => Ok(()),
        }
    }

    fn cluster(&self, environment: &Environment) -> Result<ClientConfig, ConfigError> {
        let cluster = self.cluster;
        let entry = format!("cluster {:?}", self.cluster_name);
        let roots = input(
            cluster.certificate_authority_data.as_deref(),
            cluster.certificate_authority.as_deref(),
            || format!("certificate-authority-data of {entry}"),
        )?;
        let is_insecure = cluster.insecure_skip_tls_verify == Some(true);
        if is_insecure && roots.is_some() {
            return Err(ConfigError::InsecureWithAuthority { cluster: self.cluster_name.to_owned() });
        }

        let no_server = || ConfigError::BadServer { origin: entry.clone(), problem: "missing" };
        let server = cluster.server.as_deref().ok_or_else(no_server)?;
        // An address without a scheme is https if any setting implies TLS, as in kubectl.
        let implies_tls = roots.is_some()
            || is_insecure
            || self.user.client_certificate.is_some()
            || self.user.client_certificate_data.is_some();
        let server = if server.contains("://") {
            server.to_owned()
        } else {
            format!("{}://{server}", if implies_tls { "https" } else { "http" })
        };
        let mut config = ClientConfig::at(&server, &entry, environment)?;
        config.roots = roots;
        config.accept_invalid_certs = is_insecure;
        if let Some(name) = &cluster.tls_server_name {
            let bad = || ConfigError::BadServerName { name: name.clone() };
            config.server_name = Some(server_name(name).ok_or_else(bad)?);
        }
        if let Some(url) = &cluster.proxy_url {
            let bad = |source| ConfigError::BadProxy { origin: entry.clone(), source };
            config.proxy = Some(Proxy::parse(url).map_err(bad)?);
        }
        Ok(config)
    }

    fn user(&self, config: &mut ClientConfig, environment: &Environment) -> Result<(), ConfigError> {
        let (user, name) = (&self.user, self.user_name);
        if let Some(provider) = &user.auth_provider {
            return Err(ConfigError::AuthProviderUnsupported {
                user: name.to_owned(),
                provider: provider.name.clone(),
            });
        }
        let has_token = user.token.is_some() || user.token_file.is_some();
        let has_password = user.username.is_some() || user.password.is_some();
        if has_token && has_password {
            return Err(ConfigError::ConflictingCredentials { user: name.to_owned() });
        }
        config.token.clone_from(&user.token);
        config.token_file = user.token_file.as_ref().map(Into::into);
        if has_password {
            let password = user.password.clone().unwrap_or_default();
            config.login = Some((user.username.clone().unwrap_or_default(), password));
        }

        let certificate =
            input(user.client_certificate_data.as_deref(), user.client_certificate.as_deref(), || {
                format!("client-certificate-data of user {name:?}")
            })?;
        let key = input(
            user.client_key_data.as_ref().map(ExposeSecret::expose_secret),
            user.client_key.as_deref(),
            || format!("client-key-data of user {name:?}"),
        )?;
        config.identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => {
                return Err(ConfigError::HalfIdentity { user: name.to_owned() });
            }
        };

        let groups = user.impersonate_groups.clone().unwrap_or_default();
        let extra = user.impersonate_user_extra.clone().unwrap_or_default();
        let mut impersonation = Impersonation::of(user.impersonate.clone().unwrap_or_default());
        impersonation.uid.clone_from(&user.impersonate_uid);
        impersonation.groups = groups;
        impersonation.extra = extra.into_iter().collect();
        config.impersonation = impersonation;

        // A token or password of the user takes precedence over a plugin.
        if let Some(section) = user.exec.as_ref().filter(|_| !has_token && !has_password) {
            let authorities = match &config.roots {
                Some(roots) if section.provide_cluster_info => Some(roots.read()?.expose_secret().to_vec()),
                _ => None,
            };
            let search_path = environment.variable("PATH").map(ToOwned::to_owned);
            let cluster = || self.cluster_info(authorities);
            config.exec = Some(ExecPlugin::from_kubeconfig(name, section, cluster, search_path)?);
        }
        Ok(())
    }

    /// Returns the cluster information for an exec plugin that requests it.
    fn cluster_info(&self, certificate_authority_data: Option<Vec<u8>>) -> ExecAuthCluster {
        let mut extensions = self.cluster.extensions.iter().flatten();
        let config = extensions.find(|named| named.name == EXEC_EXTENSION);
        ExecAuthCluster {
            server: self.cluster.server.clone(),
            insecure_skip_tls_verify: self.cluster.insecure_skip_tls_verify,
            certificate_authority_data,
            proxy_url: self.cluster.proxy_url.clone(),
            tls_server_name: self.cluster.tls_server_name.clone(),
            config: config.map(|named| named.extension.clone()),
        }
    }
}

/// Returns the value of a `-data` field, which takes precedence over the path of the same name.
fn input(
    data: Option<&str>,
    path: Option<&str>,
    label: impl FnOnce() -> String,
) -> Result<Option<InlineOrFile>, ConfigError> {
    let Some(data) = data else {
        return Ok(path.map(InlineOrFile::file));
    };
    // Folded YAML scalars contain spaces and line breaks.
    let data: String = data.split_ascii_whitespace().collect();
    match BASE64_STANDARD.decode(data) {
        Ok(bytes) => Ok(Some(InlineOrFile::inline(label(), bytes))),
        Err(_) => Err(ConfigError::BadBase64 { origin: label() }),
    }
}
