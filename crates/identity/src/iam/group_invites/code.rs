//! The text that an invited person presents: what it names, authenticated with the server's key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bowline_authn::crypto::constant_time_eq;
use bowline_core::{Error, Reason, Result, Uidp};
use bowline_pipeline::Vault;

use super::InviteRow;

/// What an authentic invitation code says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InviteCode {
    /// The group that it invites to.
    pub group: Uidp,
    /// Names the one invitation.
    pub key_id: String,
    /// Unix seconds; the stored invitation decides.
    pub expires_at: i64,
}

/// The code of an invitation: always the same one, so that it needs not be stored.
pub(crate) fn code(vault: &Vault, row: &InviteRow) -> String {
    text(vault, row.group(), &row.key_id, row.expires_at.div_euclid(1_000_000))
}

fn text(vault: &Vault, group: &str, key_id: &str, expires_at: i64) -> String {
    let signature = vault.mac("invite code", format!("{group}\n{key_id}\n{expires_at}").as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(signature);
    // UIDPs, digits and base64 need no escapes.
    let json = format!(r#"{{"grp":"{group}","kid":"{key_id}","exp":{expires_at},"sig":"{signature}"}}"#);
    URL_SAFE_NO_PAD.encode(json)
}

/// More than any code of this server has, the deepest group included.
const LONGEST: usize = 4096;

/// Reads a code that this server made; any other text is refused, whatever is wrong with it.
///
/// # Errors
/// INVALID_ARGUMENT, always the same.
pub fn read_code(vault: &Vault, given: &str) -> Result<InviteCode> {
    let code = parse(given).ok_or_else(not_valid)?;
    // Made again and compared whole: no other text stands for the same invitation.
    let expected = text(vault, code.group.as_str(), &code.key_id, code.expires_at);
    if constant_time_eq(expected.as_bytes(), given.as_bytes()) { Ok(code) } else { Err(not_valid()) }
}

fn not_valid() -> Error {
    Error::new(Reason::InvalidArgument, "Invalid argument: the invitation code is not valid")
}

fn parse(given: &str) -> Option<InviteCode> {
    let json = URL_SAFE_NO_PAD.decode(Some(given).filter(|text| text.len() <= LONGEST)?).ok()?;
    let value: serde_json::Value = serde_json::from_slice(&json).ok()?;
    Some(InviteCode {
        group: Uidp::parse(value["grp"].as_str()?).ok()?,
        key_id: value["kid"].as_str()?.into(),
        expires_at: value["exp"].as_i64()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use bowline_authn::crypto::KeyEncryptionKey;

    const GROUP: &str = "0123456789abcdef0123456789abcdef01234567/0123456789abcdef";

    fn vault(key: u8) -> Vault {
        Vault::new(KeyEncryptionKey::from_bytes(&[1; 32]).unwrap(), [key; 32])
    }

    fn row() -> InviteRow {
        InviteRow {
            uid: Uidp::parse(&format!("{GROUP}/00000000000000aa")).unwrap(),
            role: "r".into(),
            email: String::new(),
            key_id: "00112233445566778899aabbccddeeff".into(),
            promised: None,
            narrowing: bowline_pipeline::Narrowing::default(),
            single_use: false,
            inviter: "i".into(),
            expires_at: 1_700_000_000_999_999,
            used_at: None,
            created_at: 0,
        }
    }

    #[test]
    fn a_code_says_what_was_put_in() {
        let text = code(&vault(2), &row());
        assert!(text.starts_with("eyJncnAiOi"), "{text}");
        let read = read_code(&vault(2), &text).unwrap();
        assert_eq!((read.group.as_str(), read.expires_at), (GROUP, 1_700_000_000));
        assert_eq!(read.key_id, row().key_id);
    }

    #[test]
    fn any_damage_is_refused_alike() {
        let vault = vault(2);
        let text = code(&vault, &row());
        let json = String::from_utf8(URL_SAFE_NO_PAD.decode(&text).unwrap()).unwrap();
        let mut bad = vec![
            String::new(),
            "{}".into(),
            format!("{text}="),
            format!(" {text}"),
            format!("{text}A"),
            "A".repeat(5000),
            URL_SAFE_NO_PAD.encode("{}"),
            URL_SAFE_NO_PAD.encode(json.replace("1700000000", "1800000000")),
            URL_SAFE_NO_PAD.encode(json.replace("eeff\"", "eefe\"")),
            URL_SAFE_NO_PAD.encode(json.replace("/0123", "/0124")),
            URL_SAFE_NO_PAD.encode(json.replace(',', ", ")),
            URL_SAFE_NO_PAD.encode(json.replace('}', r#","more":1}"#)),
            code(&super::tests::vault(3), &row()),
        ];
        for i in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[i] = if bytes[i] == b'A' { b'B' } else { b'A' };
            bad.push(String::from_utf8(bytes).unwrap());
        }
        for text in bad {
            let error = read_code(&vault, &text).unwrap_err();
            assert_eq!(error.reason(), Reason::InvalidArgument);
            assert_eq!(error.message(), "Invalid argument: the invitation code is not valid", "{text}");
        }
    }
}
