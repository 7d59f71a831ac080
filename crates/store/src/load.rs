//! How busy the storage is.

/// How busy the engine is.
#[derive(Clone, Copy, Debug)]
pub enum Load {
    /// The writer of the embedded engine.
    Sqlite(WriterLoad),
    /// The connections to PostgreSQL.
    Postgres(PoolLoad),
}

/// The one writer of the embedded engine.
#[derive(Clone, Copy, Debug)]
pub struct WriterLoad {
    /// Writes that wait for the writer.
    pub waiting: u64,
    /// Groups of writes that were committed together.
    pub groups: u64,
    /// Writes in these groups.
    pub writes: u64,
}

/// The connections of this process.
#[derive(Clone, Copy, Debug)]
pub struct PoolLoad {
    pub used: u64,
    /// Connections that are open and free.
    pub idle: u64,
    /// Transactions that wait for a connection.
    pub waiting: u64,
}
