//! Host and domain names (Heat's `common/netutils.py`).

const LABEL_MAX: usize = 63;
const NAME_MAX: usize = 255;

/// A host name, absolute or relative; an empty name is valid.
pub(super) fn name(text: &str) -> Result<(), String> {
    labels(text).map_err(|reason| format!("'{text}' not in valid format. Reason: {reason}"))
}

/// A relative name, to which a domain is added later.
pub(super) fn relative_name(text: &str) -> Result<(), String> {
    if text.ends_with('.') {
        return Err(format!("'{text}' is a FQDN. It should be a relative domain name."));
    }
    let length = text.chars().count();
    // A domain adds at least a dot and two characters.
    if length > NAME_MAX - 3 {
        return Err(format!(
            "'{text}' contains '{length}' characters. Adding a domain name will cause it to exceed the maximum length \
             of a FQDN of '{NAME_MAX}'."
        ));
    }
    name(text)
}

/// A domain with a trailing dot; an empty domain is valid.
pub(super) fn domain(text: &str) -> Result<(), String> {
    name(text)?;
    if text.is_empty() || text.ends_with('.') { Ok(()) } else { Err(format!("'{text}' must end with '.'.")) }
}

fn labels(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Ok(());
    }
    let relative = text.strip_suffix('.').unwrap_or(text);
    if relative.chars().count() > NAME_MAX {
        return Err(format!("'{relative}' exceeds the {NAME_MAX} character FQDN limit"));
    }
    let labels: Vec<&str> = relative.split('.').collect();
    for label in &labels {
        if label.is_empty() {
            return Err("Encountered an empty component.".to_owned());
        }
        if label.starts_with('-') || label.ends_with('-') {
            return Err(format!("Name '{label}' must not start or end with a hyphen."));
        }
        let plain = label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if !plain || label.len() > LABEL_MAX {
            return Err(format!(
                "Name '{label}' must be 1-{LABEL_MAX} characters long, each of which can only be alphanumeric or a \
                 hyphen."
            ));
        }
    }
    match labels.last() {
        Some(last) if text.ends_with('.') && labels.len() > 1 && last.bytes().all(|b| b.is_ascii_digit()) => {
            Err(format!("TLD '{last}' must not be all numeric."))
        }
        _ => Ok(()),
    }
}
