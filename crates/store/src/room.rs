//! Room on the disk of the embedded database.
//!
//! Writes that grow what is stored are refused while little is free, so that deletions and the operator's commands still
//! find room. Where something else fills the disk to the last byte, a reserve file gives its blocks back step by step, to
//! those writes alone.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::{FallocateFlags, fallocate, statvfs};
use rustix::io::Errno;

/// Size of a file system, and what this process may still write to it.
#[derive(Clone, Copy, Debug)]
pub struct Space {
    pub total: u64,
    /// Bytes that are free.
    pub free: u64,
}

type Measure = dyn Fn(&Path) -> io::Result<Space> + Send + Sync;

/// Measures the file system that a path is on; tests give their own figures.
#[derive(Clone)]
pub struct DiskProbe(Arc<Measure>);

impl DiskProbe {
    /// A probe of one's own.
    pub fn new(measure: impl Fn(&Path) -> io::Result<Space> + Send + Sync + 'static) -> DiskProbe {
        DiskProbe(Arc::new(measure))
    }
}

impl Default for DiskProbe {
    fn default() -> DiskProbe {
        DiskProbe::new(|path| {
            let found = statvfs(path)?;
            let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
            Ok(Space { total: bytes(found.f_blocks), free: bytes(found.f_bavail) })
        })
    }
}

impl std::fmt::Debug for DiskProbe {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("DiskProbe")
    }
}

/// The reserve takes at most this part of a file system.
const PART_OF_DISK: u64 = 16;

/// What is known of the disk, and the reserve on it.
#[derive(Debug)]
pub struct Room {
    directory: PathBuf,
    reserve: PathBuf,
    probe: DiskProbe,
    /// Bytes of a whole reserve; 0 for none.
    whole: u64,
    free: AtomicU64,
    is_full: AtomicBool,
    /// Held from a measurement to what follows from it: an older one must not have the last word.
    turn: Mutex<()>,
}

impl Room {
    /// The room of a data directory, with a reserve of so many bytes at most. It is not created before [`Room::look`].
    pub fn new(directory: &Path, most: u64, probe: DiskProbe) -> Room {
        let total = (probe.0)(directory).map_or(0, |space| space.total);
        Room {
            directory: directory.to_owned(),
            reserve: directory.join("reserve"),
            probe,
            whole: most.min(total / PART_OF_DISK),
            free: AtomicU64::new(0),
            is_full: AtomicBool::new(false),
            turn: Mutex::new(()),
        }
    }

    /// Whether writes that need more room are refused: little is free, or the reserve is not whole.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    /// Bytes that were free when last looked.
    pub fn free(&self) -> u64 {
        self.free.load(Ordering::Relaxed)
    }

    /// Bytes of a whole reserve.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// Bytes that the reserve has.
    pub fn held(&self) -> u64 {
        std::fs::metadata(&self.reserve).map_or(0, |metadata| metadata.len())
    }

    /// Below this many free bytes, writes that need more room are refused.
    fn low(&self) -> u64 {
        self.whole / 4
    }

    /// Below this many free bytes, the reserve gives back as many.
    fn step(&self) -> u64 {
        self.whole / 8
    }

    /// Measures the disk, and makes the reserve whole once there is room for it. The server calls it every second.
    pub fn look(&self) {
        if self.whole == 0 {
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut free) = self.measure() else { return };
        let missing = self.whole.saturating_sub(self.held());
        if missing > 0 && free >= missing + self.low() {
            match self.fill() {
                Ok(()) => free = self.measure().unwrap_or(free),
                Err(error) => tracing::warn!(%error, "the disk reserve could not be created; trying again"),
            }
        }
        let is_full = free < self.low() || self.held() < self.whole;
        if self.is_full.swap(is_full, Ordering::Relaxed) != is_full {
            if is_full {
                tracing::error!(free, "the disk is full: only reads, deletions and the operator's commands are served");
            } else {
                tracing::info!(free, "the disk has room again");
            }
        }
    }

    /// Gives one step of the reserve back if less than a step is free: before a write that may use it.
    pub fn make_way(&self) {
        if self.whole == 0 {
            return;
        }
        // Most writes find room, and do not wait for a look that makes the reserve.
        if self.measure().is_none_or(|free| free >= self.step()) {
            return;
        }
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(free) = self.measure() else { return };
        let held = self.held();
        if free >= self.step() || held == 0 {
            return;
        }
        let left = held.saturating_sub(self.step().max(1));
        let shortened = OpenOptions::new().write(true).open(&self.reserve).and_then(|file| file.set_len(left));
        match shortened {
            Ok(()) => tracing::warn!(free, left, "the disk is full: a part of the reserve was given back"),
            Err(error) => tracing::error!(%error, "the disk is full, and its reserve could not be given back"),
        }
        self.is_full.store(true, Ordering::Relaxed);
    }

    /// The size of the file system and what is free of it now; absent if it cannot be measured.
    pub fn space(&self) -> Option<Space> {
        (self.probe.0)(&self.directory).ok()
    }

    fn measure(&self) -> Option<u64> {
        match (self.probe.0)(&self.directory) {
            Ok(space) => {
                self.free.store(space.free, Ordering::Relaxed);
                Some(space.free)
            }
            Err(error) => {
                tracing::warn!(%error, "the room on the disk could not be measured");
                None
            }
        }
    }

    fn fill(&self) -> io::Result<()> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&self.reserve)?;
        match fallocate(&file, FallocateFlags::empty(), 0, self.whole) {
            Err(Errno::OPNOTSUPP) => write_zeros(file, self.whole),
            outcome => Ok(outcome?),
        }
    }
}

/// For file systems that cannot allocate without writing.
fn write_zeros(mut file: File, bytes: u64) -> io::Result<()> {
    let zeros = vec![0; 1 << 20];
    let mut left = bytes;
    while left > 0 {
        let part = left.min(zeros.len() as u64);
        file.write_all(&zeros[..part as usize])?;
        left -= part;
    }
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn the_reserve_goes_step_by_step_and_comes_back_when_there_is_room() {
        let directory = tempfile::tempdir().unwrap();
        let free = Arc::new(AtomicU64::new(100 * MIB));
        let shown = free.clone();
        let probe = DiskProbe::new(move |_| Ok(Space { total: 64 * MIB, free: shown.load(Ordering::Relaxed) }));
        let room = Room::new(directory.path(), 64 * MIB, probe);
        assert_eq!(room.whole(), 4 * MIB, "a sixteenth of a small disk");
        room.look();
        assert_eq!((room.held(), room.is_full()), (4 * MIB, false));
        // Little is left: growing writes end, and what is free is enough for the others.
        free.store(MIB - 1, Ordering::Relaxed);
        room.look();
        room.make_way();
        assert_eq!((room.held(), room.is_full()), (4 * MIB, true));
        free.store(0, Ordering::Relaxed);
        for left in [7, 6, 5, 4, 3, 2, 1, 0, 0] {
            room.make_way();
            assert_eq!(room.held(), left * MIB / 2);
        }
        // A whole reserve and what must be free beside it.
        free.store(5 * MIB - 1, Ordering::Relaxed);
        room.look();
        assert_eq!((room.held(), room.is_full()), (0, true));
        free.store(5 * MIB, Ordering::Relaxed);
        room.look();
        assert_eq!((room.held(), room.is_full()), (4 * MIB, false));
    }

    #[test]
    fn the_reserve_takes_blocks_of_the_disk() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let directory = tempfile::tempdir().unwrap();
        let room = Room::new(directory.path(), MIB, DiskProbe::default());
        room.look();
        let metadata = std::fs::metadata(directory.path().join("reserve")).unwrap();
        assert!(metadata.blocks() * 512 >= MIB, "{} blocks", metadata.blocks());
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
        let none = Room::new(directory.path(), 0, DiskProbe::default());
        none.look();
        none.make_way();
        assert!(!none.is_full() && room.held() == MIB);
    }
}
