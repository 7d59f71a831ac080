//! The one path of every call: authenticate, limit, authorize, validate, handle in one transaction, record.
//!
//! Transports turn what they receive into a [`Call`] and give it to [`Pipeline::dispatch`]; handlers
//! are registered with [`Handlers`] for a method type of the contract and receive an [`Authorized`]
//! request, which only this crate can make.
//!
//! To add a handler: write `async fn(tx: &mut WriteTx, call: &Authorized<Request>) -> Result<Changed<Response>>`
//! (or `ReadTx` and `Result<Response>` for a read) and register it. What it must check itself is only
//! what the contract cannot say: that a grant does not exceed the caller's own capabilities
//! ([`Authorized::require_all`]), and, for unscoped methods, where the caller may look
//! ([`Authorized::visible`]).

mod access;
pub mod audit;
mod authenticate;
mod call;
mod changed;
mod changes;
mod console;
mod deferred;
mod dispatch;
mod field_names;
mod follow_up;
mod grants;
mod handlers;
mod heavy;
pub mod lease;
mod mask;
mod page;
mod preview;
mod principal;
mod quota;
mod rate_limit;
mod read;
mod record;
mod settings;
mod streams;
mod tables;
mod terms;
mod ttl_cache;
mod validate;
mod validators;
mod vault;
mod visit;
mod waiting;
mod write;

pub use access::Access;
pub use authenticate::{Authenticator, OwnKeys};
pub use call::{Authorized, Call, Caller, Open, Paged, Paging, RequestOrigin, Transport};
pub use changed::{Change, Changed, EventBody, ResourceSnapshot};
pub use changes::Unlocked;
pub use console::{ConsoleCall, ConsolePipeline, ConsoleStream, ConsoleWatch, HeldToken};
pub use deferred::{Cancelled, MayDefer, defer};
pub use dispatch::{Outcome, Pipeline};
pub use grants::{Cause, Decision, Grants, GrantsCache, NamedOperators, OperatorStanding};
pub use handlers::{Answer, Handlers, Watched};
pub use mask::Mask;
pub use page::{Cursor, Direction, Page, PageKey, PageRequest, SortKey};
pub use preview::{PreviewTarget, Previewed, PreviewedEvent};
pub use principal::{ANONYMOUS, Narrowing, OPERATOR, Principal, TokenFacts};
pub use quota::{Full, Lease, Quota};
pub use rate_limit::{RateLimits, Refusals, Surface};
pub use record::{Actor, record_audit, record_event};
pub use settings::{OrganizationCreators, Settings, UploadLimits};
pub use streams::{Stream, StreamLimits, Streams};
pub use tables::TABLES;
pub use terms::require_terms;
pub use ttl_cache::{Entry, TtlCache, network};
pub use vault::Vault;
pub use visit::Visit;
