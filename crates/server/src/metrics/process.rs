use bowline_rpc::Telemetry;

use super::Described;

/// In the order of [`measure`].
pub(super) const FIGURES: &[Described] = &[
    ("process_resident_memory_bytes", "Resident memory of the process"),
    ("process_open_fds", "Open file descriptors"),
    ("process_max_fds", "Limit of open file descriptors"),
];

/// Figures are absent where the system has no `/proc`.
pub(super) fn measure(telemetry: &Telemetry) {
    let values = [resident_bytes(), open_descriptors(), most_descriptors()];
    for (&(name, _), value) in FIGURES.iter().zip(values) {
        if let Some(value) = value {
            telemetry.set(name, &[], value);
        }
    }
}

fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<f64>().ok().map(|kibibytes| kibibytes * 1024.0)
}

fn open_descriptors() -> Option<f64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as f64)
}

fn most_descriptors() -> Option<f64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}
