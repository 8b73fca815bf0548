//! Names of members.

/// The longest name of a member, in bytes.
const LONGEST: usize = 1024;

/// The name of a file of the package, without `.` parts; `None` if it is absolute, leaves the package, or is not a
/// plain name on every system (back slashes, drives, control characters).
pub(crate) fn normal(name: &str) -> Option<String> {
    join("", name)
}

/// The file that `name` means in the folder `base`.
pub(crate) fn join(base: &str, name: &str) -> Option<String> {
    let odd = |c: char| c == '\\' || c.is_control();
    if name.is_empty() || name.len() > LONGEST || name.starts_with('/') || name.contains(odd) || has_drive(name) {
        return None;
    }
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Whether the name begins like `C:`.
fn has_drive(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic()) && bytes.next() == Some(b':')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_in_the_package() {
        assert_eq!(normal("./a//b/../c.sh").as_deref(), Some("a/c.sh"));
        assert_eq!(join("Definitions", "../Scripts/a.sh").as_deref(), Some("Scripts/a.sh"));
        for name in ["../a", "/etc/passwd", "a/../../b", "C:/a", "..\\a", "", "a\0b"] {
            assert_eq!(normal(name), None, "{name:?}");
        }
    }
}
