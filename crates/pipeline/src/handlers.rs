use std::sync::Arc;

use bowline_contract::{Auth, Contract, Method};
use bowline_core::{Error, Result};
use bowline_store::{BoxFuture, ReadTx, WriteTx};
use bytes::Bytes;
use prost::Message;

use crate::access::Access;
use crate::call::{Authorized, Open};
use crate::changed::Changed;
use crate::heavy::IsHeavy;
use crate::preview::PreviewHandler;
use crate::validators::Validator;

/// A function `async fn(tx, call)` as a handler to register: its future is boxed.
///
/// ```ignore
/// handlers.read::<GetRepo>(handler!(get)).write::<CreateRepo>(handler!(create))
/// ```
#[macro_export]
macro_rules! handler {
    ($function:path) => {
        |tx, call| ::std::boxed::Box::pin($function(tx, call))
    };
}

pub(crate) type ReadFn =
    dyn for<'a> Fn(&'a mut ReadTx, &'a Authorized<Bytes>) -> BoxFuture<'a, Result<Bytes>> + Send + Sync;
/// The part of a response that is computed after its transaction has ended.
pub(crate) type Rest = BoxFuture<'static, Result<Bytes>>;
pub(crate) type ReadThenFn =
    dyn for<'a> Fn(&'a mut ReadTx, &'a Authorized<Bytes>) -> BoxFuture<'a, Result<Rest>> + Send + Sync;
/// What is left to do before a second transaction, and what that one does.
pub(crate) type Between = BoxFuture<'static, Result<Again>>;
pub(crate) type Again =
    Box<dyn for<'a> FnOnce(&'a mut ReadTx, &'a Authorized<Bytes>) -> BoxFuture<'a, Result<Bytes>> + Send>;
pub(crate) type ReadAgainFn =
    dyn for<'a> Fn(&'a mut ReadTx, &'a Authorized<Bytes>) -> BoxFuture<'a, Result<Between>> + Send + Sync;
/// A writing handler that returns `T`.
pub(crate) type WriteFnOf<T> =
    dyn for<'a> Fn(&'a mut WriteTx, &'a Authorized<Bytes>) -> BoxFuture<'a, Result<Changed<T>>> + Send + Sync;
pub(crate) type WriteFn = WriteFnOf<Bytes>;
/// Makes the handler of one request, which runs in the transaction.
pub(crate) type PrepareFn = dyn Fn(&Bytes) -> Result<Arc<WriteFn>> + Send + Sync;
pub(crate) type OpenFn = dyn Fn(Open<Bytes>) -> BoxFuture<'static, Result<Answer>> + Send + Sync;

#[derive(Clone, Debug)]
pub struct Answer {
    /// The response in wire format.
    pub payload: Bytes,
    /// An entity tag that distinguishes the response from every other one of the method, for responses that
    /// callers may cache.
    pub tag: Option<Arc<str>>,
}

impl From<Bytes> for Answer {
    fn from(payload: Bytes) -> Answer {
        Answer { payload, tag: None }
    }
}

pub(crate) type OpenReadFn =
    dyn for<'a> Fn(&'a mut ReadTx, &'a Open<Bytes>) -> BoxFuture<'a, Result<Bytes>> + Send + Sync;

pub(crate) type WatchFn = dyn for<'a> Fn(&'a mut ReadTx, &'a Authorized<Bytes>, Option<i64>) -> BoxFuture<'a, Result<Watched<Bytes>>>
    + Send
    + Sync;

/// What a watching handler found in one look.
#[derive(Clone, Debug)]
pub struct Watched<T> {
    /// What is new, each with the number to continue from after it.
    pub items: Vec<(i64, T)>,
    /// Where the next look begins.
    pub cursor: i64,
    /// Whether there is more to be seen at once.
    pub more: bool,
}

#[derive(Clone)]
pub(crate) enum Handler {
    Read(Arc<ReadFn>),
    HeavyRead(Arc<ReadFn>),
    HeavyReadWhen(Arc<IsHeavy>, Arc<ReadFn>),
    ReadThen(Arc<ReadThenFn>),
    ReadAgain(Arc<ReadAgainFn>),
    Write(Arc<WriteFn>),
    WriteThen(Arc<WriteFnOf<Rest>>),
    Prepared(Arc<PrepareFn>),
    Open(Arc<OpenFn>),
    OpenRead(Arc<OpenReadFn>),
    Watch(Arc<WatchFn>),
    Preview(Arc<PreviewHandler>),
}

/// The handlers of all methods, by position in the method table. A method without one fails with
/// UNIMPLEMENTED.
pub struct Handlers {
    pub(crate) contract: Arc<Contract>,
    pub(crate) access: &'static Access,
    table: Vec<Option<Handler>>,
    pub(crate) validators: Vec<Option<Validator>>,
}

impl Handlers {
    /// No handlers yet; `access` is how calls are authorized.
    pub fn new(contract: Arc<Contract>, access: &'static Access) -> Handlers {
        let table = vec![None; contract.methods().len()];
        let validators = vec![None; contract.methods().len()];
        Handlers { contract, access, table, validators }
    }

    /// Whether the method has a handler that changes rows of the database.
    pub fn writes(&self, method: usize) -> bool {
        matches!(self.get(method), Some(Handler::Write(_) | Handler::WriteThen(_) | Handler::Prepared(_)))
    }

    /// Whether the method runs the handlers of others, and rolls back what they do.
    pub(crate) fn previews(&self, method: usize) -> bool {
        matches!(self.get(method), Some(Handler::Preview(_)))
    }

    /// Registers a handler that only reads.
    pub fn read<M: Method>(
        mut self,
        handler: impl for<'a> Fn(&'a mut ReadTx, &'a Authorized<M::Request>) -> BoxFuture<'a, Result<M::Response>>
        + Clone
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.put::<M>(true, Handler::Read(typed_read::<M>(handler)));
        self
    }

    /// Registers a handler whose response needs more than the database: `find` reads in a transaction, and
    /// `answer` continues with the result after it, since a transaction may await nothing else.
    pub fn read_then<M: Method, F: Send + 'static>(
        mut self,
        find: impl for<'a> Fn(&'a mut ReadTx, &'a Authorized<M::Request>) -> BoxFuture<'a, Result<F>>
        + Clone
        + Send
        + Sync
        + 'static,
        answer: impl Fn(F) -> BoxFuture<'static, Result<M::Response>> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.put::<M>(
            true,
            Handler::ReadThen(Arc::new(move |tx, call| {
                let (find, answer) = (find.clone(), answer.clone());
                Box::pin(async move {
                    let typed = call.with_request(decode::<M::Request>(call.request())?);
                    let found = find(tx, &typed).await?;
                    let rest = async move { Ok(answer(found).await?.encode_to_vec().into()) };
                    Ok(Box::pin(rest) as Rest)
                })
            })),
        );
        self
    }

    /// Like [`Handlers::read_then`], but the result of `between` is read from the database once more:
    /// `answer` has a snapshot of its own, in which the caller is authorized again.
    pub fn read_again<M: Method, F: Send + 'static, P: Send + 'static>(
        mut self,
        find: impl for<'a> Fn(&'a mut ReadTx, &'a Authorized<M::Request>) -> BoxFuture<'a, Result<F>>
        + Clone
        + Send
        + Sync
        + 'static,
        between: impl Fn(F) -> BoxFuture<'static, Result<P>> + Clone + Send + Sync + 'static,
        answer: impl for<'a> Fn(&'a mut ReadTx, &'a Authorized<M::Request>, P) -> BoxFuture<'a, Result<M::Response>>
        + Clone
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.put::<M>(
            true,
            Handler::ReadAgain(Arc::new(move |tx, call| {
                let (find, between, answer) = (find.clone(), between.clone(), answer.clone());
                Box::pin(async move {
                    let typed = call.with_request(decode::<M::Request>(call.request())?);
                    let found = find(tx, &typed).await?;
                    let between = async move {
                        let worked_out = between(found).await?;
                        let again: Again = Box::new(move |tx, call| {
                            Box::pin(async move {
                                let typed = call.with_request(decode::<M::Request>(call.request())?);
                                Ok(answer(tx, &typed, worked_out).await?.encode_to_vec().into())
                            })
                        });
                        Ok(again)
                    };
                    Ok(Box::pin(between) as Between)
                })
            })),
        );
        self
    }

    /// Registers a handler that changes something.
    pub fn write<M: Method>(
        mut self,
        handler: impl for<'a> Fn(&'a mut WriteTx, &'a Authorized<M::Request>) -> BoxFuture<'a, Result<Changed<M::Response>>>
        + Clone
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.put::<M>(
            true,
            Handler::Write(Arc::new(move |tx, call| {
                let handler = handler.clone();
                Box::pin(async move {
                    let typed = call.with_request(decode::<M::Request>(call.request())?);
                    Ok(handler(tx, &typed).await?.map(|response| response.encode_to_vec().into()))
                })
            })),
        );
        self
    }

    /// Registers a handler that changes something with what was made of the request before its transaction begins, once
    /// and where it holds no one up: for requests that take long to read.
    pub fn prepared_write<M: Method, P: Send + Sync + 'static>(
        mut self,
        prepare: impl Fn(M::Request) -> Result<P> + Send + Sync + 'static,
        handler: impl for<'a> Fn(&'a mut WriteTx, &'a Authorized<()>, &'a P) -> BoxFuture<'a, Result<Changed<M::Response>>>
        + Clone
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.put::<M>(
            true,
            Handler::Prepared(Arc::new(move |payload| {
                let (prepared, handler) = (Arc::new(prepare(decode::<M::Request>(payload)?)?), handler.clone());
                Ok(Arc::new(move |tx, call| {
                    let (prepared, handler) = (prepared.clone(), handler.clone());
                    Box::pin(async move {
                        let changed = handler(tx, &call.with_request(()), &prepared).await?;
                        Ok(changed.map(|response| response.encode_to_vec().into()))
                    })
                }))
            })),
        );
        self
    }

    /// Registers a handler of a method with a streamed response. It runs repeatedly, each time in a snapshot
    /// of its own in which the caller is authorized again; at first without a cursor, then from where it left
    /// off. A stream that the contract calls finite ends when the handler has no more.
    pub fn watch<M: Method>(
        mut self,
        handler: impl for<'a> Fn(
            &'a mut ReadTx,
            &'a Authorized<M::Request>,
            Option<i64>,
        ) -> BoxFuture<'a, Result<Watched<M::Response>>>
        + Clone
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.put::<M>(
            true,
            Handler::Watch(Arc::new(move |tx, call, cursor| {
                let handler = handler.clone();
                Box::pin(async move {
                    let typed = call.with_request(decode::<M::Request>(call.request())?);
                    let Watched { items, cursor, more } = handler(tx, &typed, cursor).await?;
                    let items = items.into_iter().map(|(id, item)| (id, item.encode_to_vec().into())).collect();
                    Ok(Watched { items, cursor, more })
                })
            })),
        );
        self
    }

    /// Registers a handler of a method that is public or authenticates by itself.
    pub fn open<M: Method>(
        mut self,
        handler: impl Fn(Open<M::Request>) -> BoxFuture<'static, Result<M::Response>> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.put::<M>(
            false,
            Handler::Open(Arc::new(move |call| {
                let handler = handler.clone();
                Box::pin(async move { Ok(Bytes::from(handler(call.decoded()?).await?.encode_to_vec()).into()) })
            })),
        );
        self
    }

    /// Registers a handler of a public method whose responses are encoded in advance.
    pub fn prepared<M: Method>(
        mut self,
        handler: impl Fn(Open<M::Request>) -> BoxFuture<'static, Result<Answer>> + Clone + Send + Sync + 'static,
    ) -> Self {
        self.put::<M>(
            false,
            Handler::Open(Arc::new(move |call| {
                let handler = handler.clone();
                Box::pin(async move { handler(call.decoded()?).await })
            })),
        );
        self
    }

    /// Registers a handler of a public method that only reads.
    pub fn open_read<M: Method>(
        mut self,
        handler: impl for<'a> Fn(&'a mut ReadTx, &'a Open<M::Request>) -> BoxFuture<'a, Result<M::Response>>
        + Clone
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.put::<M>(
            false,
            Handler::OpenRead(Arc::new(move |tx, call| {
                let handler = handler.clone();
                Box::pin(async move {
                    let typed = call.same(decode::<M::Request>(call.request())?);
                    Ok(handler(tx, &typed).await?.encode_to_vec().into())
                })
            })),
        );
        self
    }

    /// # Panics
    /// The registration contradicts the contract: a defect that every start shows.
    pub(crate) fn put<M: Method>(&mut self, needs_permission: bool, handler: Handler) {
        let method = self.contract.by_full_name(M::FULL_NAME);
        let method = method.unwrap_or_else(|| panic!("{} is not in the contract", M::FULL_NAME));
        let has_permission = matches!(method.auth, Auth::Capabilities { .. });
        assert_eq!(has_permission, needs_permission, "{} is registered as the wrong kind of handler", M::FULL_NAME);
        let streams = matches!(handler, Handler::Watch(_));
        assert_eq!(streams, method.server_streaming, "{} is registered as the wrong kind of handler", M::FULL_NAME);
        let entry = &mut self.table[method.index];
        assert!(entry.is_none(), "{} has two handlers", M::FULL_NAME);
        *entry = Some(handler);
    }

    pub(crate) fn get(&self, method: usize) -> Option<&Handler> {
        self.table[method].as_ref()
    }

    /// Whether the method at this position of the table has a streamed response.
    pub fn streams(&self, method: usize) -> bool {
        matches!(self.table[method], Some(Handler::Watch(_)))
    }

    /// Whether the method at this position of the table has a handler.
    pub fn implements(&self, method: usize) -> bool {
        self.table[method].is_some()
    }
}

pub(crate) fn typed_read<M: Method>(
    handler: impl for<'a> Fn(&'a mut ReadTx, &'a Authorized<M::Request>) -> BoxFuture<'a, Result<M::Response>>
    + Clone
    + Send
    + Sync
    + 'static,
) -> Arc<ReadFn> {
    Arc::new(move |tx, call| {
        let handler = handler.clone();
        Box::pin(async move {
            let typed = call.with_request(decode::<M::Request>(call.request())?);
            Ok(handler(tx, &typed).await?.encode_to_vec().into())
        })
    })
}

pub(crate) fn decode<T: Message + Default>(payload: &Bytes) -> Result<T> {
    T::decode(payload.clone()).map_err(|error| {
        Error::new(
            bowline_core::Reason::InvalidArgument,
            format!("Invalid argument: the request does not decode: {error}"),
        )
    })
}

impl Open<Bytes> {
    fn decoded<T: Message + Default>(self) -> Result<Open<T>> {
        let request = decode(self.request())?;
        Ok(self.with(request))
    }
}
