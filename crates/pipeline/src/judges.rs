//! What methods validate besides the contract's rules, where the request alone decides it.

use std::sync::Arc;

use bowline_contract::Method;
use bowline_core::FieldViolation;
use bytes::Bytes;

use crate::handlers::{Handlers, decode};

pub(crate) type JudgeFn = dyn Fn(&Bytes) -> Vec<FieldViolation> + Send + Sync;

/// What a method validates besides the contract's rules.
#[derive(Clone)]
pub(crate) struct Judge {
    pub(crate) judge: Arc<JudgeFn>,
    /// Whether it costs more than a look at the request, such as the compilation of patterns.
    pub(crate) is_costly: bool,
}

impl Handlers {
    /// Registers what is judged of a request besides the contract's rules, where the request alone decides it:
    /// the caller hears of everything at once.
    pub fn judge<M: Method>(self, judge: impl Fn(&M::Request) -> Vec<FieldViolation> + Send + Sync + 'static) -> Self {
        self.put_judge::<M>(judge, false)
    }

    /// The same where that costs much, such as the compilation of patterns: few of them run at once.
    pub fn judge_costly<M: Method>(
        self,
        judge: impl Fn(&M::Request) -> Vec<FieldViolation> + Send + Sync + 'static,
    ) -> Self {
        self.put_judge::<M>(judge, true)
    }

    fn put_judge<M: Method>(
        mut self,
        judge: impl Fn(&M::Request) -> Vec<FieldViolation> + Send + Sync + 'static,
        is_costly: bool,
    ) -> Self {
        let method = self.contract.by_full_name(M::FULL_NAME);
        let method = method.unwrap_or_else(|| panic!("{} is not in the contract", M::FULL_NAME));
        let judge =
            move |payload: &Bytes| decode::<M::Request>(payload).map(|request| judge(&request)).unwrap_or_default();
        self.judges[method.index] = Some(Judge { judge: Arc::new(judge), is_costly });
        self
    }

    pub(crate) fn judge_of(&self, method: usize) -> Option<&Judge> {
        self.judges[method].as_ref()
    }
}
