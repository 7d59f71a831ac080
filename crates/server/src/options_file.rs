use crate::error::StartError;
use crate::options::Options;
use crate::unusable;

impl Options {
    /// Fills unset options from the configuration file.
    ///
    /// # Errors
    /// The file cannot be read, or has a key that is not an option or a value of the wrong type.
    pub fn with_file(self) -> Result<Options, StartError> {
        let Some(path) = self.config.clone() else {
            return Ok(self);
        };
        let text = std::fs::read_to_string(&path).map_err(|error| unusable::configuration_file(&path, &error))?;
        let file: Options = toml::from_str(&text).map_err(|error| unusable::configuration(&path, &text, &error))?;
        let names: toml::Table =
            toml::from_str(&text).map_err(|error| unusable::configuration(&path, &text, &error))?;
        let mut options = self.merge(file);
        options.origins.add_file(names.keys());
        Ok(options)
    }

    #[expect(clippy::too_many_lines, reason = "a line for each option")]
    fn merge(self, file: Options) -> Options {
        let list = |own: Vec<ipnet::IpNet>, other: Vec<ipnet::IpNet>| if own.is_empty() { other } else { own };
        Options {
            origins: self.origins,
            config: self.config,
            data_dir: self.data_dir.or(file.data_dir),
            // A command's choice; a configuration file of real data does not turn into a demonstration.
            demo: self.demo,
            listen: self.listen.or(file.listen),
            admin_listen: self.admin_listen.or(file.admin_listen),
            base_url: self.base_url.or(file.base_url),
            auth_url: self.auth_url.or(file.auth_url),
            registry_host: self.registry_host.or(file.registry_host),
            libraries_url: self.libraries_url.or(file.libraries_url),
            osv_url: self.osv_url.or(file.osv_url),
            sigstore_trust_root: self.sigstore_trust_root.or(file.sigstore_trust_root),
            database_url: self.database_url.or(file.database_url),
            database_connections: self.database_connections.or(file.database_connections),
            database_map: self.database_map.or(file.database_map),
            blob_url: self.blob_url.or(file.blob_url),
            disk_reserve: self.disk_reserve.or(file.disk_reserve),
            // For tests; the file cannot set it.
            disk_probe: self.disk_probe,
            pull_spill: self.pull_spill.or(file.pull_spill),
            backup_to: self.backup_to.or(file.backup_to),
            backup_recipient: self.backup_recipient.or(file.backup_recipient),
            backup_every: self.backup_every.or(file.backup_every),
            backup_keep: self.backup_keep.or(file.backup_keep),
            gc_every: self.gc_every.or(file.gc_every),
            gc_grace: self.gc_grace.or(file.gc_grace),
            upload_idle: self.upload_idle.or(file.upload_idle),
            uploads_per_identity: self.uploads_per_identity.or(file.uploads_per_identity),
            uploads_per_organization: self.uploads_per_organization.or(file.uploads_per_organization),
            organizations: self.organizations.or(file.organizations),
            tls_cert: self.tls_cert.or(file.tls_cert),
            tls_key: self.tls_key.or(file.tls_key),
            // For tests; the file cannot set it.
            tls_look_every: self.tls_look_every,
            key_file: self.key_file.or(file.key_file),
            token_algorithm: self.token_algorithm.or(file.token_algorithm),
            allow_private_addresses: list(self.allow_private_addresses, file.allow_private_addresses),
            trusted_proxies: list(self.trusted_proxies, file.trusted_proxies),
            redirect_origins: if self.redirect_origins.is_empty() {
                file.redirect_origins
            } else {
                self.redirect_origins
            },
            cors_origins: if self.cors_origins.is_empty() { file.cors_origins } else { self.cors_origins },
            max_connections: self.max_connections.or(file.max_connections),
            max_connections_per_address: self.max_connections_per_address.or(file.max_connections_per_address),
            first_request_timeout: self.first_request_timeout.or(file.first_request_timeout),
            idle_timeout: self.idle_timeout.or(file.idle_timeout),
            request_timeout: self.request_timeout.or(file.request_timeout),
            shutdown_timeout: self.shutdown_timeout.or(file.shutdown_timeout),
            streams_per_caller: self.streams_per_caller.or(file.streams_per_caller),
            streams_per_organization: self.streams_per_organization.or(file.streams_per_organization),
            max_streams: self.max_streams.or(file.max_streams),
            advisory_memory: self.advisory_memory.or(file.advisory_memory),
            max_request: self.max_request.or(file.max_request),
            max_requests_under_way: self.max_requests_under_way.or(file.max_requests_under_way),
            grpc_reflection: self.grpc_reflection.or(file.grpc_reflection),
            console: self.console.or(file.console),
            rate_limit_principal: self.rate_limit_principal.or(file.rate_limit_principal),
            rate_limit_address: self.rate_limit_address.or(file.rate_limit_address),
            audit_retention: self.audit_retention.or(file.audit_retention),
            retention_every: self.retention_every.or(file.retention_every),
            scim_rate: self.scim_rate.or(file.scim_rate),
            osv_rate: self.osv_rate.or(file.osv_rate),
            aws_sts_hosts: if self.aws_sts_hosts.is_empty() { file.aws_sts_hosts } else { self.aws_sts_hosts },
            aws_sts_url: self.aws_sts_url.or(file.aws_sts_url),
            // Only the file has these.
            operator_providers: file.operator_providers,
            log_format: self.log_format.or(file.log_format),
            entitlements_required: self.entitlements_required || file.entitlements_required,
            terms_required: self.terms_required || file.terms_required,
            terms: if self.terms.is_empty() { file.terms } else { self.terms },
            blocked_email_domains: if self.blocked_email_domains.is_empty() {
                file.blocked_email_domains
            } else {
                self.blocked_email_domains
            },
            smtp_url: self.smtp_url.or(file.smtp_url),
            mail_from: self.mail_from.or(file.mail_from),
            advisory_prefix: self.advisory_prefix.or(file.advisory_prefix),
            community_charts: self.community_charts.or(file.community_charts),
            iamguarded_charts: self.iamguarded_charts.or(file.iamguarded_charts),
            log: self.log.or(file.log),
        }
    }
}
