//! Whether a read-me is safe to show: Markdown becomes HTML, and of that HTML a sanitizer for user content
//! would remove nothing.
//!
//! The HTML is checked tag by tag, as a streaming sanitizer does: in time linear in its length, whatever its
//! nesting. Elements that change how a browser reads what follows (scripts, styles, foreign content) are not
//! allowed, so a browser sees the tags that are checked here. Anyone who renders a read-me sanitizes it all the same.

use std::cell::Cell;

use html5ever::tendril::StrTendril;
use html5ever::tokenizer::{BufferQueue, Tag, Token, TokenSink, TokenSinkResult, Tokenizer, TokenizerOpts};
use pulldown_cmark::{Alignment, Event, Options, Parser, Tag as MarkdownTag, html};

/// Whether a sanitizer leaves the read-me as it is.
pub(super) fn is_safe(markdown: &str) -> bool {
    let validate = SafetySink { is_safe: Cell::new(true) };
    let tokenizer = Tokenizer::new(validate, TokenizerOpts::default());
    let input = BufferQueue::default();
    input.push_back(StrTendril::from(to_html(markdown)));
    let _ = tokenizer.feed(&input);
    tokenizer.end();
    tokenizer.sink.is_safe.get()
}

fn to_html(markdown: &str) -> String {
    let parser = Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    // The renderer writes alignments as styles, which no one else may write.
    let unaligned = parser.map(|event| match event {
        Event::Start(MarkdownTag::Table(columns)) => {
            Event::Start(MarkdownTag::Table(vec![Alignment::None; columns.len()]))
        }
        other => other,
    });
    let mut rendered = String::with_capacity(markdown.len() * 3 / 2);
    html::push_html(&mut rendered, unaligned);
    rendered
}

struct SafetySink {
    is_safe: Cell<bool>,
}

impl TokenSink for SafetySink {
    type Handle = ();

    fn process_token(&self, token: Token, _line: u64) -> TokenSinkResult<()> {
        let is_safe = match &token {
            Token::TagToken(tag) => is_allowed(tag),
            Token::DoctypeToken(_) => false,
            _ => true,
        };
        if !is_safe {
            self.is_safe.set(false);
        }
        TokenSinkResult::Continue
    }
}

const ELEMENTS: &[&str] = &[
    "a",
    "abbr",
    "acronym",
    "area",
    "article",
    "aside",
    "b",
    "bdi",
    "bdo",
    "blockquote",
    "br",
    "caption",
    "center",
    "cite",
    "code",
    "col",
    "colgroup",
    "dd",
    "del",
    "details",
    "dfn",
    "div",
    "dl",
    "dt",
    "em",
    "figcaption",
    "figure",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hgroup",
    "hr",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "map",
    "mark",
    "nav",
    "ol",
    "p",
    "pre",
    "q",
    "rp",
    "rt",
    "ruby",
    "s",
    "samp",
    "section",
    "small",
    "span",
    "strike",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "time",
    "tr",
    "tt",
    "u",
    "ul",
    "var",
    "wbr",
];

fn is_allowed(tag: &Tag) -> bool {
    let element = &*tag.name;
    ELEMENTS.contains(&element)
        && tag.attrs.iter().all(|attribute| is_allowed_attribute(element, &attribute.name.local, &attribute.value))
}

fn is_allowed_attribute(element: &str, attribute: &str, value: &str) -> bool {
    match (element, attribute) {
        ("a" | "area", "href") | ("img", "src") | ("blockquote" | "q" | "del" | "ins", "cite") => is_allowed_url(value),
        // What the Markdown renderer makes of fenced code.
        ("code", "class") => value.starts_with("language-") && !value.contains(char::is_whitespace),
        (_, "id") => value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte)),
        (_, "align" | "dir" | "lang" | "title")
        | ("a", "rel")
        | ("img", "alt" | "height" | "width" | "usemap")
        | ("map", "name")
        | ("area", "alt" | "coords" | "shape")
        | ("details", "open")
        | ("del" | "ins" | "time", "datetime")
        | ("ol", "start" | "reversed" | "type")
        | ("ul", "type")
        | ("li", "value" | "type")
        | ("table", "border" | "cellpadding" | "cellspacing" | "summary" | "width")
        | ("col" | "colgroup", "span" | "valign" | "width" | "height")
        | ("thead" | "tbody" | "tfoot" | "tr", "valign")
        | ("td" | "th", "abbr" | "colspan" | "headers" | "height" | "rowspan" | "scope" | "valign" | "width") => true,
        _ => false,
    }
}

fn is_allowed_url(value: &str) -> bool {
    match url::Url::parse(value) {
        Ok(url) => matches!(url.scheme(), "http" | "https" | "mailto"),
        Err(error) => error == url::ParseError::RelativeUrlWithoutBase,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_markdown_is_safe() {
        for text in [
            "",
            "# Title\n\nText & \"quotes\" <https://example.com> [a](../b \"c\") ![d](e.png)\n\n---\n\n5. x\n6. y\n   - z\n",
            "| a | b |\n|:--|--:|\n| 1 | ~~2~~ |\n",
            "```c++\nlet x = \"<script>\";\n```\n\n    <script>indented code</script>\n",
            "<!-- overview:start -->\n<p align=\"center\"><img src=\"x.svg\" width=\"40\" height=\"40\" /></p>\n\n<br>\n",
            "a < b and 3 > 2, &lt;script&gt; and `<iframe>`",
            "[mail](mailto:a@example.com) <b>bold</b> <details open><summary>s</summary>t</details>",
        ] {
            assert!(is_safe(text), "{text}");
        }
    }

    #[test]
    fn what_a_sanitizer_removes_is_unsafe() {
        for text in [
            "<script>alert(1)</script>",
            "<SCRIPT src=//x>",
            "text <img src=x onerror=alert(1)>",
            "<a href=\"javascript:alert(1)\">x</a>",
            "<a href=\" jav&#x09;ascript:alert(1)\">x</a>",
            "[x](javascript:alert(1))",
            "[x](data:text/html;base64,AAAA)",
            "<iframe src=\"https://example.com\"></iframe>",
            "<svg><g/></svg>",
            "<style>p{}</style>",
            "<p style=\"position:fixed\">x</p>",
            "<p class=\"x\">x</p>",
            "<form><input></form>",
            "<!DOCTYPE html>",
            "<code class=\"x\">y</code>",
            "<x-element>y</x-element>",
        ] {
            assert!(!is_safe(text), "{text}");
        }
    }

    #[test]
    fn deep_nesting_takes_linear_time() {
        assert!(is_safe(&"<div>".repeat(50_000)));
        assert!(is_safe(&"> ".repeat(2_000)));
    }
}
