//! Enums whose values are words in the API and in the database.

/// `words! { /// Docs. Name { /// Docs. Variant = "WORD", … } }` defines an enum with `ALL`, `as_str`, `Display` and `FromStr`.
#[macro_export]
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$variant_doc])* $variant,)* }

        impl $name {
            /// All of them.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$variant,)*];

            /// Its word.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::words::UnknownWord;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                match word {
                    $($word => Ok(Self::$variant),)*
                    _ => Err($crate::words::UnknownWord { of: stringify!($name), word: word.to_owned() }),
                }
            }
        }
    };
}

/// A word that is none of an enum's; a newer version of Kiln may have written it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown word {word:?} (a {of})")]
pub struct UnknownWord {
    /// The name of the enum.
    pub of: &'static str,
    /// The word.
    pub word: String,
}
