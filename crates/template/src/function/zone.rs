//! `Fn::GetAZs`.

use kiln_value::{Diagnostic, Value};

use super::Function;
use crate::expr::{Call, Context};

/// The availability zones, regardless of the region given.
#[derive(Debug)]
pub(crate) struct GetAzs;

impl Function for GetAzs {
    fn resolve(&self, _call: &Call, context: &Context) -> Result<Option<Value>, Diagnostic> {
        Ok(Some(Value::from(context.scope.availability_zones()?)))
    }
}
