//! Default names of objects (docs/heat-behaviour.md §7.1).

use uuid::Uuid;

/// 12 characters of base32, from the 60 random bits in the time fields of a version 4 UUID.
///
/// # Errors
/// Heat's message for a UUID of another version.
pub fn short_id(id: Uuid) -> Result<String, String> {
    const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    if id.get_version_num() != 4 {
        return Err(format!("Invalid UUID version ({})", id.get_version_num()));
    }
    let (low, mid, high, _) = id.as_fields();
    let bits = (u64::from(high & 0x0fff) << 48) | (u64::from(mid) << 32) | u64::from(low);
    let five_bits = |shift: u32| usize::try_from((bits >> shift) & 31).ok().and_then(|i| ALPHABET.get(i));
    Ok((0..12).rev().filter_map(|i| five_bits(i * 5)).map(|byte| char::from(*byte)).collect())
}

/// Shortens a name to at most `limit` characters, keeping its first two and its last characters.
///
/// # Errors
/// Heat's message for a limit below 4.
pub fn reduce(name: &str, limit: usize) -> Result<String, String> {
    let length = name.chars().count();
    if length <= limit {
        return Ok(name.to_owned());
    }
    if limit < 4 {
        return Err("limit cannot be less than 4".to_owned());
    }
    let head: String = name.chars().take(2).collect();
    let tail: String = name.chars().skip(length - (limit - 3)).collect();
    Ok(format!("{head}-{tail}"))
}

/// `<stack>-<resource>-<short id>`, within the type's limit.
pub fn physical_name(stack: &str, resource: &str, id: Uuid, limit: usize) -> String {
    let short = short_id(id).unwrap_or_else(|_| id.simple().to_string());
    let name = format!("{}-{resource}-{short}", stack.trim_end_matches('*'));
    reduce(&name, limit.max(4)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_enough() {
        let id: Uuid = "3f2504e0-4f89-41d3-9a0c-0305e82c3301".parse().unwrap();
        assert_eq!(short_id(id).unwrap(), "du2pre7skbha");
        assert_eq!(physical_name("stack*", "r", id, 255), "stack-r-du2pre7skbha");
        assert_eq!(physical_name("stack", "resource", id, 10), "st-e7skbha");
        assert!(short_id(Uuid::nil()).is_err());
    }
}
