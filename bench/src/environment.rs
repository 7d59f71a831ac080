//! What the environment say: where the server is, where prepared data goes, which PostgreSQL to use.

use std::path::PathBuf;
use std::time::Duration;

use crate::Outcome;

#[derive(Clone)]
pub(crate) struct Environment {
    /// The server's binary.
    pub(crate) server: PathBuf,
    /// Another build of it, to compare with in the same run.
    pub(crate) baseline: Option<PathBuf>,
    /// Directory that caches prepared data directories.
    pub(crate) cache: PathBuf,
    /// Admin database of a PostgreSQL, if there is one to measure with.
    pub(crate) postgres: Option<String>,
    /// How many advisories there are in the line about them.
    pub(crate) advisories: usize,
    /// Versions of packages, where another number than usual is wanted.
    pub(crate) versions: Option<usize>,
    /// Number of records, if it is not the usual one.
    pub(crate) records: Option<u64>,
    /// Number of images with SBOMs, if it is not the usual one.
    pub(crate) images: Option<usize>,
    /// How long one load runs.
    pub(crate) measured: Duration,
    /// How long it runs before that, uncounted.
    pub(crate) warm_up: Duration,
}

impl Environment {
    pub(crate) fn read() -> Outcome<Environment> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let server = match variable("BOWLINE_BENCH_SERVER") {
            Some(path) => path.into(),
            None => std::env::current_exe()?.with_file_name("bowline"),
        };
        let cache = match variable("BOWLINE_CACHE") {
            Some(path) => PathBuf::from(path),
            None => PathBuf::from(variable("HOME").ok_or("set HOME or BOWLINE_CACHE")?).join(".cache/bowline"),
        };
        Ok(Environment {
            server,
            baseline: variable("BOWLINE_BENCH_BASELINE").map(PathBuf::from),
            cache: cache.join("bench"),
            postgres: variable("BOWLINE_TEST_POSTGRES").and_then(|url| url.into_string().ok()),
            advisories: 500_000,
            versions: match variable("BOWLINE_BENCH_VERSIONS").and_then(|number| number.into_string().ok()) {
                Some(number) => Some(number.parse()?),
                None => None,
            },
            records: variable("BOWLINE_BENCH_RECORDS").and_then(|number| number.to_str()?.parse().ok()),
            images: variable("BOWLINE_BENCH_IMAGES").and_then(|number| number.to_str()?.parse().ok()),
            measured: Duration::from_secs(4),
            warm_up: Duration::from_secs(1),
        })
    }
}
