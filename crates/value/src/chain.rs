//! An error with its causes, as one text.

use std::error::Error;
use std::fmt;

/// Shows an error and its causes, from the outermost to the innermost, with `: ` between them: in logs and in the output of
/// commands. A cause whose text was already shown, as part of an outer one, is left out.
#[derive(Clone, Copy, Debug)]
pub struct Chain<'e>(pub &'e (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = self.0.to_string();
        for cause in causes(self.0) {
            let text = cause.to_string();
            if !shown.contains(&text) {
                shown.push_str(": ");
                shown.push_str(&text);
            }
        }
        f.write_str(&shown)
    }
}

/// The innermost cause of an error, or the error itself: the outer texts of some libraries only repeat the URL.
pub fn innermost<'e>(error: &'e (dyn Error + 'static)) -> &'e (dyn Error + 'static) {
    causes(error).last().unwrap_or(error)
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| cause.source())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error with a text and a cause.
    #[derive(Debug)]
    struct Told(&'static str, Option<Box<Told>>);

    impl fmt::Display for Told {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Told {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(self.1.as_deref()?)
        }
    }

    fn told<const N: usize>(texts: [&'static str; N]) -> Told {
        let inner = texts.into_iter().rev().fold(None, |inner, text| Some(Box::new(Told(text, inner))));
        *inner.expect("a text")
    }

    #[test]
    fn causes_follow_the_error() {
        let error = told(["cannot start", "no key", "file not found"]);
        assert_eq!(Chain(&error).to_string(), "cannot start: no key: file not found");
        assert_eq!(innermost(&error).to_string(), "file not found");
        assert_eq!(Chain(&told(["alone"])).to_string(), "alone");
        assert_eq!(innermost(&told(["alone"])).to_string(), "alone");
    }

    #[test]
    fn a_text_is_shown_once() {
        let error = told(["database: no route (code 5)", "no route", "code 5", "host x", "no route"]);
        assert_eq!(Chain(&error).to_string(), "database: no route (code 5): host x");
    }
}
