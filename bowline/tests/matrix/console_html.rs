//! Pages as a browser reads them: tags with their attributes, and text.

use std::cell::RefCell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::states::RawKind;
use html5ever::tokenizer::{BufferQueue, TagKind, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};

/// An element's start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) name: String,
    pub(crate) attributes: Vec<(String, String)>,
}

impl Tag {
    /// The value of an attribute.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Default)]
struct Sink {
    tags: RefCell<Vec<Tag>>,
    text: RefCell<String>,
}

impl TokenSink for Sink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        match token {
            Token::CharacterTokens(text) => self.text.borrow_mut().push_str(&text),
            Token::NullCharacterToken => self.text.borrow_mut().push('\u{fffd}'),
            Token::CommentToken(text) => panic!("a page has the comment {text}"),
            Token::TagToken(tag) if tag.kind == TagKind::StartTag => {
                let attributes = tag.attrs.iter().map(|one| (one.name.local.to_string(), one.value.to_string()));
                let name = tag.name.to_string();
                let raw = match name.as_str() {
                    "title" | "textarea" => Some(RawKind::Rcdata),
                    "script" => Some(RawKind::ScriptData),
                    "style" | "iframe" | "noembed" | "xmp" => Some(RawKind::Rawtext),
                    _ => None,
                };
                self.tags.borrow_mut().push(Tag { name, attributes: attributes.collect() });
                return raw.map_or(TokenSinkResult::Continue, TokenSinkResult::RawData);
            }
            // What stands in two elements is not one text.
            Token::TagToken(_) => self.text.borrow_mut().push('\n'),
            _ => {}
        }
        TokenSinkResult::Continue
    }
}

/// The tags of a page and its text.
pub(crate) fn read(html: &str) -> (Vec<Tag>, String) {
    let tokenizer = Tokenizer::new(Sink::default(), TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(html));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    (tokenizer.sink.tags.into_inner(), tokenizer.sink.text.into_inner())
}
