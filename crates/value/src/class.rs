//! The classes of errors.

use std::borrow::Cow;
use std::fmt;

macro_rules! classes {
    ($($name:ident),* $(,)?) => {
        /// The class of an error. Clients of Heat see its name, and some depend on it.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each is what its name says")]
        pub enum Class {
            $($name,)*
            /// Another one, of a service of the cloud or of YAQL.
            Other(Cow<'static, str>),
        }

        impl Class {
            /// The class with this name.
            pub fn of(name: impl Into<Cow<'static, str>>) -> Self {
                let name = name.into();
                match &*name {
                    $(stringify!($name) => Self::$name,)*
                    _ => Self::Other(name),
                }
            }

            /// Its name.
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$name => stringify!($name),)*
                    Self::Other(name) => name,
                }
            }
        }

        impl From<Class> for Cow<'static, str> {
            fn from(class: Class) -> Self {
                match class {
                    $(Class::$name => Self::Borrowed(stringify!($name)),)*
                    Class::Other(name) => name,
                }
            }
        }
    };
}

classes! {
    ActionInProgress,
    AttributeError,
    AuthorizationFailure,
    CircularDependencyException,
    ConflictingMergeStrategyForParam,
    DownloadLimitExceeded,
    EntityNotFound,
    Forbidden,
    ImmutableParameterModified,
    Invalid,
    InvalidBreakPointHook,
    InvalidExternalResourceDependency,
    InvalidMergeStrategyForParam,
    InvalidRestrictedAction,
    InvalidSchemaError,
    InvalidTemplateAttribute,
    InvalidTemplateReference,
    InvalidTemplateSection,
    InvalidTemplateVersion,
    KeyError,
    MissingCredentialError,
    NotFound,
    // Not one of Heat's: a plan depends on what is not known yet.
    NotKnownYet,
    NotSupported,
    OverflowError,
    PhysicalResourceIDAmbiguity,
    PropertyUnspecifiedError,
    RequestLimitExceeded,
    ResourceActionNotSupported,
    ResourceNotAvailable,
    ResourceNotFound,
    ResourcePropertyConflict,
    ResourcePropertyDependency,
    ResourcePropertyValueDependency,
    ResourceTypeUnavailable,
    SnapshotNotFound,
    StackExists,
    StackValidationFailed,
    TemplateOutputError,
    TypeError,
    UnicodeEncodeError,
    UnknownUserParameter,
    UserParameterMissing,
    ValueError,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
