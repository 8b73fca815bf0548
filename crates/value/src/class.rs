//! The classes of errors.

use std::borrow::Cow;
use std::fmt;

macro_rules! classes {
    ($($name:ident),* $(,)?) => {
        /// The class of an error, as Heat calls its exception. Clients of Heat see its name, and some depend on it.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "each is what its name says")]
        pub enum Class {
            $($name,)*
            /// Another one: of a client of the cloud, a plug-in or YAQL.
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
    AssertionError,
    AttributeError,
    AuthorizationFailure,
    BadRequest,
    CircularDependencyException,
    ClientNotFound,
    Conflict,
    ConflictingMergeStrategyForParam,
    ConnectFailure,
    ConnectTimeout,
    CreateLost,
    Database,
    DownloadLimitExceeded,
    DuplicateResource,
    EndpointNotFound,
    EntityNotFound,
    Error,
    Exception,
    ExceptionGroup,
    Forbidden,
    ForcedCancel,
    HTTPBadRequest,
    HTTPConflict,
    HTTPForbidden,
    HTTPInternalServerError,
    HTTPMethodNotAllowed,
    HTTPNotFound,
    HTTPNotImplemented,
    HTTPRequestTimeout,
    HTTPServiceUnavailable,
    HTTPTooManyRequests,
    ImmutableParameterModified,
    IncompatibleObjectVersion,
    IndexError,
    InterfaceNotFound,
    InternalError,
    InternalServerError,
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
    InvalidTenant,
    KeyError,
    MalformedResponse,
    MalformedResponseBody,
    MessageBus,
    MissingCredentialError,
    NeutronClientNoUniqueMatch,
    NoActionRequired,
    NoUniqueMatch,
    NotAuthorized,
    NotConfigured,
    NotFound,
    NotFoundException,
    NotImplementedError,
    // Not one of Heat's: a plan depends on what is not known yet.
    NotKnownYet,
    NotSupported,
    OSError,
    ObjectActionError,
    ObjectFieldInvalid,
    OctaviaClientException,
    OrphanedObjectError,
    OverLimit,
    OverQuotaClient,
    OverflowError,
    PhysicalResourceExists,
    PhysicalResourceIDAmbiguity,
    PhysicalResourceNameAmbiguity,
    PluginError,
    PollDelay,
    PropertyUnspecifiedError,
    ReadOnlyFieldError,
    RequestEntityTooLarge,
    RequestLimitExceeded,
    RequestTimeout,
    ResourceActionNotSupported,
    ResourceActionRestricted,
    ResourceFailure,
    ResourceInError,
    ResourceNotAvailable,
    ResourceNotFound,
    ResourcePropertyConflict,
    ResourcePropertyDependency,
    ResourcePropertyValueDependency,
    ResourceTypeUnavailable,
    ResourceUnknownStatus,
    RuntimeError,
    ServiceUnavailable,
    SnapshotNotFound,
    StackExists,
    StackValidationFailed,
    SwiftSignalFailure,
    SwiftSignalTimeout,
    TemplateOutputError,
    Timeout,
    TypeError,
    Unauthorized,
    Unexpected,
    UnicodeEncodeError,
    UnknownUserParameter,
    UnsupportedObjectError,
    UpdateInProgress,
    UpdateReplace,
    UserParameterMissing,
    ValueError,
    WaitConditionFailure,
    WaitConditionTimeout,
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
