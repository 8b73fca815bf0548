//! Splits a command into words, as a shell does.

/// The words of a command; the error is Python's text.
pub(super) fn split(command: &str) -> Result<Vec<String>, &'static str> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = command.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' | '\r' | '\n' => words.extend(word.take()),
            '\'' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('\'') => break,
                        Some(c) => word.push(c),
                        None => return Err("No closing quotation"),
                    }
                }
            }
            '"' => {
                let word = word.get_or_insert_default();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some('\\') => match chars.next() {
                            Some(c @ ('"' | '\\')) => word.push(c),
                            Some(c) => word.extend(['\\', c]),
                            None => return Err("No closing quotation"),
                        },
                        Some(c) => word.push(c),
                        None => return Err("No closing quotation"),
                    }
                }
            }
            '\\' => word.get_or_insert_default().push(chars.next().ok_or("No escaped character")?),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_those_of_a_shell() {
        let words = |text: &str| split(text).unwrap();
        assert_eq!(words("sh -c 'echo  \"a\"'"), ["sh", "-c", "echo  \"a\""]);
        assert_eq!(words(r#" a"b \" \n"c\ d '' "#), [r#"ab " \nc d"#, ""]);
        assert_eq!(split("a 'b"), Err("No closing quotation"));
        assert_eq!(split("a\\"), Err("No escaped character"));
    }
}
