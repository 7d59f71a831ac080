//! Calls of a front that rests reading only and changes something on request.

use bowline_contract::bowline::preview::v1::rpc::previews::Preview;
use bowline_contract::{Auth, Method as _};
use bowline_core::{Error, Micros, Reason};

use crate::console::{ConsoleCall, ConsolePipeline};
use crate::dispatch::Outcome;

/// Proof that a form which a person sent asks for one call of one method, in a session in which that person unlocked
/// changes.
///
/// It is used up by the call. The structure test names the one file that may make it: the one that checks forms.
#[derive(Debug)]
pub struct Unlocked {
    method: usize,
    until: Micros,
}

impl Unlocked {
    /// The proof of a form that was checked, for the method at this position of the table, in a session that is unlocked
    /// until then.
    pub fn by_form(method: usize, until: Micros) -> Unlocked {
        Unlocked { method, until }
    }
}

impl ConsolePipeline {
    /// Runs a call that may change something; fails where the time for changes is over.
    pub async fn change(&self, call: ConsoleCall<'_>, unlocked: Unlocked) -> Outcome {
        if self.now() >= unlocked.until {
            let text = "Precondition failed: changes are locked; unlock them and send the form again";
            return Outcome::failed(Error::new(Reason::FailedPrecondition, text));
        }
        if self.can_send(call.method) && call.method == unlocked.method {
            return self.dispatch(call).await;
        }
        let name = &self.contract().method(call.method).full_name;
        Outcome::failed(Error::internal(format!("a form called {name}, which it is not for")))
    }

    /// Whether a form can send a method: one response, to a caller that the access token names. Methods that
    /// authenticate by themselves return access tokens.
    pub fn can_send(&self, method: usize) -> bool {
        let info = self.contract().method(method);
        !info.server_streaming && !matches!(info.auth, Auth::Own)
    }

    /// Position of the method that previews others.
    ///
    /// # Errors
    /// INTERNAL: the contract has none.
    pub fn preview_method(&self) -> bowline_core::Result<usize> {
        let method = self.contract().by_full_name(Preview::FULL_NAME);
        method.map(|method| method.index).ok_or_else(|| Error::internal("the contract has no Previews.Preview"))
    }

    /// Runs a preview: the effects of a call that is rolled back. It changes nothing and needs no proof.
    pub async fn preview(&self, call: ConsoleCall<'_>) -> Outcome {
        match self.preview_method() {
            Ok(method) if method == call.method => self.dispatch(call).await,
            Ok(_) => Outcome::failed(Error::internal("a preview of a front called another method")),
            Err(error) => Outcome::failed(error),
        }
    }
}
