//! What methods validate besides the contract's rules, where the request alone decides it.

use std::sync::Arc;

use bowline_contract::Method;
use bowline_core::FieldViolation;
use bytes::Bytes;

use crate::handlers::{Handlers, decode};

pub(crate) type ValidateFn = dyn Fn(&Bytes) -> Vec<FieldViolation> + Send + Sync;

/// What a method validates besides the contract's rules.
#[derive(Clone)]
pub(crate) struct Validator {
    pub(crate) validate: Arc<ValidateFn>,
    /// Whether it costs more than a look at the request, such as the compilation of patterns.
    pub(crate) is_costly: bool,
}

impl Handlers {
    /// Registers checks of a request beyond the contract's rules, where the request alone decides: the caller
    /// gets all violations at once.
    pub fn validate<M: Method>(
        self,
        validate: impl Fn(&M::Request) -> Vec<FieldViolation> + Send + Sync + 'static,
    ) -> Self {
        self.put_validator::<M>(validate, false)
    }

    /// The same where that costs much, such as the compilation of patterns: few of them run at once.
    pub fn validate_costly<M: Method>(
        self,
        validate: impl Fn(&M::Request) -> Vec<FieldViolation> + Send + Sync + 'static,
    ) -> Self {
        self.put_validator::<M>(validate, true)
    }

    fn put_validator<M: Method>(
        mut self,
        validate: impl Fn(&M::Request) -> Vec<FieldViolation> + Send + Sync + 'static,
        is_costly: bool,
    ) -> Self {
        let method = self.contract.by_full_name(M::FULL_NAME);
        let method = method.unwrap_or_else(|| panic!("{} is not in the contract", M::FULL_NAME));
        let validate =
            move |payload: &Bytes| decode::<M::Request>(payload).map(|request| validate(&request)).unwrap_or_default();
        self.validators[method.index] = Some(Validator { validate: Arc::new(validate), is_costly });
        self
    }

    pub(crate) fn validate_of(&self, method: usize) -> Option<&Validator> {
        self.validators[method].as_ref()
    }
}
