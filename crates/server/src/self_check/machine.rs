//! Checks of the options and of the machine.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use bowline_core::{Micros, rfc3339};

use super::Finding;
use crate::error::StartError;
use crate::garbage::Schedule;
use crate::options::Options;
use crate::tls::CertificateFiles;
use crate::{connections, limits, providers, request_sizes, settings};

const CONFIGURATION: &str = "configuration";
const DESCRIPTORS: &str = "descriptors";
const DISK: &str = "disk";
const TLS: &str = "tls";

/// A certificate that ends within this time is due for renewal.
const RENEW_WITHIN: Micros = 14 * 86_400 * 1_000_000;
/// A server with fewer connections than this is unusual, and mostly not meant.
const FEW_CONNECTIONS: usize = 1_000;
/// Flushes that are measured, and bytes of each: a commit of the embedded database writes about as much.
const FLUSHES: usize = 16;
const FLUSHED_BYTES: usize = 4096;
/// A commit that takes longer is a disk of yesterday, or one that others keep busy.
const SLOW_FLUSH: Duration = Duration::from_millis(20);

/// The options, as a start reads them.
pub(super) fn configuration(options: &Options) -> Vec<Finding> {
    let scheme = if options.tls_cert.is_some() { "https" } else { "http" };
    let settings = match read(options, scheme) {
        Ok(settings) => settings,
        Err(error) => return vec![Finding::failure(CONFIGURATION, &error)],
    };
    let mut findings = vec![Finding::ok(CONFIGURATION, format!("the API is at {}", settings.base_url))];
    if options.base_url.is_none() && options.listen().ip().is_unspecified() {
        let text =
            format!("the public address is made from --listen ({}), which other machines cannot use", options.listen());
        findings.push(Finding::warning(CONFIGURATION, text, "set --base-url to the address that clients use"));
    }
    let is_plain = settings.base_url.starts_with("http://");
    if is_plain && options.base_url.is_some() && !options.listen().ip().is_loopback() {
        let text = format!("tokens travel unencrypted: {} is plain HTTP", settings.base_url);
        findings.push(Finding::warning(
            CONFIGURATION,
            text,
            "give --tls-cert and --tls-key, or an https:// address of a proxy",
        ));
    }
    if !options.admin_listen().ip().is_loopback() {
        let text = format!("the admin pages listen on {} without authentication", options.admin_listen());
        findings.push(Finding::warning(
            CONFIGURATION,
            text,
            "see that only probes and the collector of metrics reach them",
        ));
    }
    findings
}

fn read(options: &Options, scheme: &str) -> Result<bowline_pipeline::Settings, StartError> {
    request_sizes::of(options)?;
    limits::request_time(options)?;
    Schedule::of(options)?;
    providers::configured(&options.operator_providers)?;
    options.key_file()?;
    // A port that the system chooses is known when it listens.
    let address: SocketAddr = options.listen();
    settings::of(options, scheme, address)
}

/// Descriptors, and room on the disk.
pub(super) fn resources(options: &Options) -> Vec<Finding> {
    let mut findings = Vec::new();
    match connections::public(options) {
        Err(error) => findings.push(Finding::failure(DESCRIPTORS, &error)),
        Ok(limits) if limits.connections < FEW_CONNECTIONS && options.max_connections.is_none() => {
            let text = format!("the limit of open files leaves {} connections", limits.connections);
            findings.push(Finding::warning(DESCRIPTORS, text, "raise the hard limit (`ulimit -Hn`, LimitNOFILE=)"));
        }
        Ok(limits) => findings.push(Finding::ok(DESCRIPTORS, format!("enough for {} connections", limits.connections))),
    }
    if options.database_url.is_none() {
        findings.extend(room(options));
    }
    findings
}

fn room(options: &Options) -> Option<Finding> {
    let directory = existing(&options.data_dir())?;
    let room = bowline_store::Room::new(
        &directory,
        u64::from(options.disk_reserve.unwrap_or(64)) << 20,
        options.disk_probe.clone(),
    );
    let space = room.space()?;
    let text = format!("{} of {} free for {}", size(space.free), size(space.total), options.data_dir().display());
    let needed = 2 * room.whole();
    if space.free < needed {
        let hint = format!("free {} at least: below half of it, writes are refused", size(needed - space.free));
        return Some(Finding::warning(DISK, text, hint));
    }
    Some(Finding::ok(DISK, text))
}

/// How long the disk takes to make a small write durable.
pub(super) fn flush_time(options: &Options) -> Vec<Finding> {
    if options.database_url.is_some() && options.blob_url.is_some() {
        return Vec::new();
    }
    let Some(directory) = existing(&options.data_dir()) else { return Vec::new() };
    let path = directory.join(format!("self-check-{}", std::process::id()));
    let measured = flushes(&path);
    let removed = std::fs::remove_file(&path);
    match measured.and_then(|times| removed.map(|()| times)) {
        Err(source) => vec![Finding::failure(DISK, &StartError::File { path, source })],
        Ok(mut times) => {
            times.sort_unstable();
            let middle = times.get(times.len() / 2).copied().unwrap_or_default();
            let text = format!("a durable write takes {:.1} ms", middle.as_secs_f64() * 1e3);
            if middle > SLOW_FLUSH {
                let hint = "each commit waits for one: put the data directory on a faster disk";
                return vec![Finding::warning(DISK, text, hint)];
            }
            vec![Finding::ok(DISK, text)]
        }
    }
}

fn flushes(path: &Path) -> std::io::Result<Vec<Duration>> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut times = Vec::with_capacity(FLUSHES);
    for _ in 0..FLUSHES {
        let started = Instant::now();
        file.write_all(&[0; FLUSHED_BYTES])?;
        file.sync_data()?;
        times.push(started.elapsed());
    }
    Ok(times)
}

/// The certificate and its key.
pub(super) fn certificate(options: &Options, now: Micros) -> Vec<Finding> {
    let files = match CertificateFiles::open(options) {
        Ok(Some(files)) => files,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![Finding::failure(TLS, &error)],
    };
    let Some(end) = files.not_after().map(|seconds| seconds.saturating_mul(1_000_000)) else {
        return vec![Finding::warning(TLS, "the end of the certificate cannot be read", "check it with openssl x509")];
    };
    let text = rfc3339::text(end, rfc3339::Digits::SixOrNone);
    if end <= now {
        let error = StartError::Unusable {
            cause: format!("the certificate ended at {text}"),
            hint: "renew it; a running server reads the new one within ten seconds".into(),
        };
        return vec![Finding::failure(TLS, &error)];
    }
    if end - now < RENEW_WITHIN {
        return vec![Finding::warning(TLS, format!("the certificate ends at {text}"), "renew it")];
    }
    vec![Finding::ok(TLS, format!("the certificate is good until {text}"))]
}

/// The directory, or the nearest one above it that exists.
fn existing(directory: &Path) -> Option<std::path::PathBuf> {
    let absolute = std::path::absolute(directory).ok()?;
    absolute.ancestors().find(|path| path.is_dir()).map(Into::into)
}

fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64 / 1024.0, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size(0), "0.0 KiB");
        assert_eq!(size(1536), "1.5 KiB");
        assert_eq!(size(3 << 30), "3.0 GiB");
        assert_eq!(size(u64::MAX), "16777216.0 TiB");
    }
}
