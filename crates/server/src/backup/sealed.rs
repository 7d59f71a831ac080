//! Encryption to a public key: HPKE (RFC 9180), X25519, HKDF-SHA256 and AES-256-GCM, in chunks.
//!
//! A sealed object is [`MAGIC`], the encapsulated secret of 32 bytes, and chunks of 64 KiB and a tag each,
//! the last one shorter or empty and marked as the last. The name of the object is bound to it. A chunk that
//! is missing, damaged or at another position does not open.

use std::io;
use std::sync::Arc;

use bowline_core::hex;
use bytes::Bytes;
use futures_util::stream::{BoxStream, StreamExt as _, unfold};
use rustls::crypto::aws_lc_rs::hpke::DH_KEM_X25519_HKDF_SHA256_AES_256 as SUITE;
use rustls::crypto::hpke::{EncapsulatedSecret, Hpke as _, HpkeOpener, HpkePrivateKey, HpkePublicKey, HpkeSealer};

const MAGIC: &[u8] = b"bowline-sealed-1\n";
const SECRET: usize = 32;
const CHUNK: usize = 64 << 10;
const TAG: usize = 16;
const MORE: &[u8] = b"more";
const LAST: &[u8] = b"last";

const RECIPIENT: &str = "bowline-recipient-1:";
const IDENTITY: &str = "bowline-identity-1:";

/// The public key that backups are encrypted to.
#[derive(Clone, Debug)]
pub(crate) struct Recipient(Arc<HpkePublicKey>);

/// The private key that opens them.
#[derive(Clone)]
pub(crate) struct Identity(Arc<HpkePrivateKey>);

impl Recipient {
    /// Reads `bowline-recipient-1:<64 hexadecimal characters>`.
    pub(crate) fn parse(text: &str) -> Option<Recipient> {
        let key = key_of(text.trim().strip_prefix(RECIPIENT)?)?;
        Some(Recipient(Arc::new(HpkePublicKey(key))))
    }
}

impl std::fmt::Display for Recipient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{RECIPIENT}{}", hex(&self.0.0))
    }
}

impl Identity {
    /// A new pair: the public key, and the text of the file with the private one.
    ///
    /// # Errors
    /// The library refuses.
    pub(crate) fn generate() -> Result<(Recipient, String), rustls::Error> {
        let (public, private) = SUITE.generate_key_pair()?;
        let recipient = Recipient(Arc::new(public));
        let text = format!(
            "# Opens the backups of {recipient}\n# Keep it where the server is not.\n{IDENTITY}{}\n",
            hex(private.secret_bytes())
        );
        Ok((recipient, text))
    }

    /// Reads the file that [`Identity::generate`] gives the text of.
    pub(crate) fn parse(text: &str) -> Option<Identity> {
        let key = text.lines().find_map(|line| line.trim().strip_prefix(IDENTITY))?;
        Some(Identity(Arc::new(HpkePrivateKey::from(key_of(key)?))))
    }
}

fn key_of(text: &str) -> Option<Vec<u8>> {
    if text.len() != 2 * SECRET || !text.is_ascii() {
        return None;
    }
    (0..SECRET).map(|i| u8::from_str_radix(text.get(i * 2..i * 2 + 2)?, 16).ok()).collect()
}

/// Encrypts what is pushed.
pub(crate) struct Sealer {
    sealer: Box<dyn HpkeSealer>,
    buffer: Vec<u8>,
}

impl Sealer {
    /// Begins the object of that name: what its bytes begin with, and the encryption of the rest.
    ///
    /// # Errors
    /// The text is not a public key.
    pub(crate) fn begin(recipient: &Recipient, name: &str) -> Result<(Vec<u8>, Sealer), rustls::Error> {
        let (secret, sealer) = SUITE.setup_sealer(name.as_bytes(), &recipient.0)?;
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&secret.0);
        Ok((head, Sealer { sealer, buffer: Vec::with_capacity(CHUNK) }))
    }

    /// Encrypts more bytes; the chunks that they complete.
    ///
    /// # Errors
    /// The library refuses.
    pub(crate) fn push(&mut self, mut bytes: &[u8]) -> Result<Vec<u8>, rustls::Error> {
        let mut sealed = Vec::new();
        while !bytes.is_empty() {
            // A full chunk waits until it is known that it is not the last.
            if self.buffer.len() == CHUNK {
                sealed.extend(self.sealer.seal(MORE, &self.buffer)?);
                self.buffer.clear();
            }
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK - self.buffer.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
        }
        Ok(sealed)
    }

    /// The last chunk.
    ///
    /// # Errors
    /// The library refuses.
    pub(crate) fn end(mut self) -> Result<Vec<u8>, rustls::Error> {
        self.sealer.seal(LAST, &self.buffer)
    }
}

/// Bytes of an object with so many bytes in it.
pub(crate) fn sealed_size(plain: u64) -> u64 {
    let chunks = plain.div_ceil(CHUNK as u64).max(1);
    (MAGIC.len() + SECRET) as u64 + plain + chunks * TAG as u64
}

/// Decrypts the object of that name as it is read.
pub(crate) fn open(
    identity: &Identity,
    name: &str,
    sealed: BoxStream<'static, io::Result<Bytes>>,
) -> BoxStream<'static, io::Result<Bytes>> {
    let opening = Opening {
        identity: identity.clone(),
        name: name.to_owned(),
        sealed,
        buffer: Vec::new(),
        opener: None,
        is_over: false,
    };
    unfold(opening, |mut opening| async move {
        let next = opening.next().await.transpose()?;
        opening.is_over |= next.is_err();
        Some((next, opening))
    })
    .boxed()
}

struct Opening {
    identity: Identity,
    name: String,
    sealed: BoxStream<'static, io::Result<Bytes>>,
    buffer: Vec<u8>,
    opener: Option<Box<dyn HpkeOpener>>,
    is_over: bool,
}

impl Opening {
    /// The next chunk in the clear; nothing after the last.
    async fn next(&mut self) -> io::Result<Option<Bytes>> {
        if self.is_over {
            return Ok(None);
        }
        if self.opener.is_none() {
            self.begin().await?;
        }
        // One byte more than a chunk says that this one is not the last.
        let has_more = self.fill(CHUNK + TAG + 1).await?;
        let chunk: Vec<u8> =
            if has_more { self.buffer.drain(..CHUNK + TAG).collect() } else { std::mem::take(&mut self.buffer) };
        self.is_over = !has_more;
        let Some(opener) = &mut self.opener else { return Err(damaged()) };
        let plain = opener.open(if has_more { MORE } else { LAST }, &chunk).map_err(|_| damaged())?;
        Ok(Some(Bytes::from(plain)))
    }

    async fn begin(&mut self) -> io::Result<()> {
        let head = MAGIC.len() + SECRET;
        if !self.fill(head).await? || !self.buffer.starts_with(MAGIC) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "it is no part of a backup"));
        }
        let secret = EncapsulatedSecret(self.buffer[MAGIC.len()..head].to_vec());
        self.buffer.drain(..head);
        let opener = SUITE.setup_opener(&secret, self.name.as_bytes(), &self.identity.0);
        self.opener = Some(opener.map_err(|_| damaged())?);
        Ok(())
    }

    /// Reads until there are so many bytes; false at the end.
    async fn fill(&mut self, wanted: usize) -> io::Result<bool> {
        while self.buffer.len() < wanted {
            match self.sealed.next().await {
                Some(bytes) => self.buffer.extend_from_slice(&bytes?),
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it is damaged, or encrypted to another key")
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt as _;

    use super::*;

    fn seal(recipient: &Recipient, name: &str, plain: &[u8]) -> Vec<u8> {
        let (mut sealed, mut sealer) = Sealer::begin(recipient, name).unwrap();
        for part in plain.chunks(50_000) {
            sealed.extend(sealer.push(part).unwrap());
        }
        sealed.extend(sealer.end().unwrap());
        sealed
    }

    async fn opened(identity: &Identity, name: &str, sealed: &[u8]) -> io::Result<Vec<u8>> {
        let parts: Vec<io::Result<Bytes>> =
            sealed.chunks(10_007).map(|part| Ok(Bytes::copy_from_slice(part))).collect();
        let parts: Vec<Bytes> = open(identity, name, futures_util::stream::iter(parts).boxed()).try_collect().await?;
        Ok(parts.concat())
    }

    #[tokio::test]
    async fn what_was_sealed_opens_with_its_key_and_name_alone() {
        let (recipient, file) = Identity::generate().unwrap();
        let identity = Identity::parse(&file).unwrap();
        assert_eq!(Recipient::parse(&recipient.to_string()).unwrap().to_string(), recipient.to_string());
        let (_, other) = Identity::generate().unwrap();
        let other = Identity::parse(&other).unwrap();
        for size in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
            let plain: Vec<u8> = (0..size).map(|n| n as u8).collect();
            let sealed = seal(&recipient, "a", &plain);
            assert_eq!(sealed.len() as u64, sealed_size(size as u64), "{size}");
            assert_eq!(opened(&identity, "a", &sealed).await.unwrap(), plain, "{size}");
            assert!(opened(&identity, "b", &sealed).await.is_err(), "{size}: another name");
            assert!(opened(&other, "a", &sealed).await.is_err(), "{size}: another key");
        }
        for wrong in ["", "bowline-recipient-1:00", "bowline-recipient-1:zz", &"0".repeat(64)] {
            assert!(Recipient::parse(wrong).is_none() && Identity::parse(wrong).is_none(), "{wrong}");
        }
    }

    #[tokio::test]
    async fn every_damage_is_noticed() {
        let (recipient, file) = Identity::generate().unwrap();
        let identity = Identity::parse(&file).unwrap();
        let sealed = seal(&recipient, "a", &vec![7; 2 * CHUNK + 9]);
        let head = MAGIC.len() + SECRET;
        for at in [0, MAGIC.len(), head, head + CHUNK + TAG, sealed.len() - 1] {
            let mut damaged = sealed.clone();
            damaged[at] ^= 1;
            assert!(opened(&identity, "a", &damaged).await.is_err(), "byte {at}");
            assert!(opened(&identity, "a", &sealed[..at]).await.is_err(), "cut at {at}");
        }
        let mut swapped = sealed[..head].to_vec();
        swapped.extend_from_slice(&sealed[head + CHUNK + TAG..head + 2 * (CHUNK + TAG)]);
        swapped.extend_from_slice(&sealed[head..head + CHUNK + TAG]);
        swapped.extend_from_slice(&sealed[head + 2 * (CHUNK + TAG)..]);
        assert!(opened(&identity, "a", &swapped).await.is_err(), "chunks in another order");
    }
}
