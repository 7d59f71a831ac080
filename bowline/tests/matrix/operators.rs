//! Named operators and the state of the server: the operator's alone.

use bowline_contract::Method;
use bowline_contract::bowline::contract::v1::OperatorRole;
use bowline_contract::bowline::operator::v1 as own;
use bowline_contract::bowline::operator::v1::rpc::operator as methods;

use super::{Aim, Check, Row, default, row};
use crate::oracle::NOT_FOUND;

pub(super) fn operators() -> Vec<Row> {
    vec![
        anywhere::<methods::ListOperators>(|_| own::ListOperatorsRequest {}),
        anywhere::<methods::GetHealth>(|_| own::GetHealthRequest {}),
        anywhere::<methods::GetStorage>(|_| own::GetStorageRequest {}),
        anywhere::<methods::ListTasks>(|_| own::ListTasksRequest {}),
        anywhere::<methods::RunTask>(|_| own::RunTaskRequest { name: "retention".into() }),
        anywhere::<methods::ListKeys>(|_| own::ListKeysRequest {}),
        anywhere::<methods::ListOrganizations>(|_| default()),
        anywhere::<methods::GetMetrics>(|_| own::GetMetricsRequest {}),
        anywhere::<methods::GetConfiguration>(|_| own::GetConfigurationRequest {}),
        anywhere::<methods::ListProviders>(|_| own::ListProvidersRequest {}),
        anywhere::<methods::RotateKeys>(|_| default()),
        // The person is none that has signed in.
        Row {
            let_through: NOT_FOUND,
            // The same person over both transports, who is not there.
            ..anywhere::<methods::GrantOperator>(|_| own::GrantOperatorRequest {
                identity: "00000000000000000000000000000000feed0000".into(),
                role: OperatorRole::Viewer as i32,
            })
        },
        anywhere::<methods::RevokeOperator>(|aim| own::RevokeOperatorRequest { identity: aim.person() }),
    ]
}

/// A method that is about no scope.
fn anywhere<M: Method>(build: impl Fn(&Aim<'_>) -> M::Request + Send + Sync + 'static) -> Row {
    Row { absent_is_fine: true, ..row::<M>(Check::Operator, build) }
}
